# Sourced by ./book: the chapters, benches and explorers that the tree has, and how the mains of two chapters differ.
# shellcheck shell=bash disable=SC2154  # what is not set here, ./book sets

list=$root/chapters/CMakeLists.txt
chapters() { sed -n 's/^ddp_add_chapter(\([0-9][0-9]_[a-z0-9_]*\).*/\1/p' "$list"; }
parent_of() { sed -n "s/^ddp_add_chapter($1 .*PARENT \([a-z0-9_]*\).*/\1/p" "$list"; }
is_page() { grep -qE "^ddp_add_chapter\($1 (PAGE|PYTHON)\)" "$list"; }  # has the chapter one program, which knows none of the usual options?
main_of() { (cd "$root" && ls "chapters/$1/"main.c* 2>/dev/null || echo "chapters/$1/${1#*_}.cpp"); }
benches() { [[ ! -d $root/tests/bench ]] || find "$root/tests/bench" -name "bench_*.cu" -o -name "bench_*.cpp" | sort; }

joined() { paste -sd, | sed 's/,/, /g; s/^$/none/'; }  # the lines of stdin as "a, b, c"
list_chapters() { chapters | sed 's/_/ /' | joined; }
explored() { [[ ! -d $root/tools/explore ]] || find "$root/tools/explore" -name 'explore_*.cpp' | sort; }
list_explored() { explored | sed 's|.*/explore_||; s|\.cpp$||' | joined; }
name_benches() { sed 's|.*/bench_||; s|\.[a-z]*$||' | joined; }  # of the sources on stdin
list_benches() { benches | name_benches; }
benches_called() {  # NAME: the source of that bench, or of those of that chapter
    benches | grep -E "/bench_$1\.(cu|cpp)$" || benches | grep "/$(find_chapter "$1" || echo none)/"
}

find_chapter() {  # 9, 09, all_reduce or 09_all_reduce -> 09_all_reduce
    local name=$1
    [[ ! $1 =~ ^[0-9]{1,2}$ ]] || name="$(printf %02d "$((10#$1))")_.*"
    [[ $1 =~ ^[a-z0-9_]+$ ]] && chapters | grep -xE "$name|[0-9]+_$name"
}
chapter_of() { find_chapter "$1" || bad_input "There is no chapter '$1'; there are: $(list_chapters)."; }

show_diff() {
    local chapter parent status=0
    (($# == 1 || $# == 2)) || bad_input "diff takes one chapter, and another to compare it with; there are: $(list_chapters)."
    chapter=$(chapter_of "$1")
    if (($# == 2)); then
        parent=$(chapter_of "$2")
    else
        parent=$(parent_of "$chapter")
    fi
    [[ -n $parent ]] || bad_input "Chapter ${chapter%%_*} grows from no other: there is nothing to compare."
    cd "$root" || exit
    # What only the parent has is told by its number of lines: its lesson is over.
    { git diff --no-index --minimal --unified=1 -- "$(main_of "$parent")" "$(main_of "$chapter")" || status=$?
      ((status <= 1)); } |  # 1 only says that the two differ
        awk -v parent="$parent" -v colours="$([[ ! -t 1 ]] || echo yes)" '
            function show(line, colour) { print colours ? "\033[" colour "m" line "\033[m" : line }
            function show_gone(i) {
                if (gone > 3)
                    show("- ... " gone " lines of " parent, 31)
                else
                    for (i = 1; i <= gone; i++)
                        show(line_gone[i], 31)
                gone = 0
            }
            /^-/ && !/^---/ { line_gone[++gone] = $0; next }
            { show_gone() }
            !/^(diff|index) / { show($0, /^\+/ ? 32 : /^@/ ? 36 : 0) }
            END { show_gone() }'
}
