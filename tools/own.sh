# Sourced by ./book: the reader's own programs, my/NAME: `./book new NAME` begins one, `./book run NAME` builds and runs it.
# shellcheck shell=bash disable=SC2154  # what is not set here, ./book sets

own_programs() { (cd "$root/my" 2>/dev/null && find . -mindepth 2 -maxdepth 2 -name 'main.c*' | sed 's|^\./||; s|/.*||' | sort -u) || true; }
is_own() { own_programs | grep -qxF -e "$1"; }
list_own() { own_programs | joined; }

make_own() {  # FOLDER: in my/, which must be the reader's own
    { mkdir -p "$root/my/$1" && [[ -w $root/my/$1 ]]; } 2>/dev/null || fail "The folder my/$1 cannot be written: copy the book to a folder that is yours."
}

new() {
    local folder=$root/my/${1:-}
    [[ $# == 1 && $1 =~ ^[a-z][a-z0-9_]{0,40}$ ]] ||
        bad_input "new takes a name for your program: a letter, and then letters, digits and _, all small."
    [[ ! -e $folder ]] || bad_input "my/$1 is there already: choose another name, or remove it."
    ! find_chapter "$1" >/dev/null || bad_input "There is a chapter '$1': choose another name."
    make_own "$1"
    cp "$root/tools/new_program.cpp" "$folder/main.cpp"
    say "my/$1/main.cpp is a training on as many ranks as you say: change it, and run it by"
    say "    ./book run $1 --ranks 4"
}

run_own() {  # NAME options...
    is_own "$1" ||
        bad_input "There is no chapter '$1'; there are: $(list_chapters). Nor is there a my/$1/main.cpp; your programs: $(list_own). \`./book new NAME\` begins one."
    prepare run
    build "my/$1" "my_$1"
    run_program "$folder/bin/my_$1" "${@:2}"
}
