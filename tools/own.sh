# Sourced by ./book: the reader's own programs, my/NAME: `./book new NAME` begins one, `./book run NAME` builds and runs it.
# shellcheck shell=bash disable=SC2154  # what is not set here, ./book sets

own_programs() { (cd "$root/my" 2>/dev/null && find . -mindepth 2 -maxdepth 2 -name 'main.c*' | sed 's|^\./||; s|/.*||' | sort -u) || true; }
list_own() { own_programs | joined; }

new() {
    local folder=$root/my/${1:-}
    [[ $# == 1 && $1 =~ ^[a-z][a-z0-9_]{0,40}$ ]] ||
        bad_input "new takes a name for your program: a letter, and then letters, digits and _, all small."
    [[ ! -e $folder ]] || bad_input "my/$1 is there already: choose another name, or remove it."
    mkdir -p "$folder" 2>/dev/null || fail "The folder my/$1 cannot be made: is the book in a folder of yours?"
    cp "$root/tools/new_program.cpp" "$folder/main.cpp"
    say "my/$1/main.cpp is a training on as many ranks as you say: change it, and run it by"
    say "    ./book run $1 --ranks 4"
}

run_own() {  # NAME options...
    own_programs | grep -qx -- "$1" ||
        bad_input "There is no chapter '$1'; there are: $(list_chapters). Nor is there a my/$1/main.cpp; your programs: $(list_own). \`./book new NAME\` begins one."
    prepare run
    build "my/$1" "my_$1"
    run_program "$folder/bin/my_$1" "${@:2}"
}
