# Sourced by ./book: the exercises, and what a reader has solved of them: check, progress and reset.
# shellcheck shell=bash disable=SC2154  # what is not set here, ./book sets

# ---- The exercises -------------------------------------------------------------------------------
# As lines "02_kernels argmax". What a reader has solved, and which hints were given, is kept beside the
# reader's own file, in my/02_kernels/.argmax.solved and .argmax.hints: names of tasks, one a line.
exercises() {
    sed -n 's/^ddp_add_exercise(\([0-9][0-9]_[a-z0-9_]*\) \([a-z0-9_]*\).*/\1 \2/p' "$root/exercises/CMakeLists.txt"
}
exercises_of() { exercises | sed -n "s/^$1 //p"; }
list_exercised() { exercises | sed 's/_.*//' | uniq | joined; }
stub_of() { compgen -G "$root/exercises/$1/$2/stub.*"; }  # CHAPTER EXERCISE
file_of() { stub_of "$1" "$2" | sed "s|.*/stub|$1/$2|"; }      # CHAPTER EXERCISE -> 02_kernels/argmax.cu
record_of() { echo "$root/my/$1/.$2.$3"; }                          # CHAPTER EXERCISE solved|hints
chapter_with_exercises() {
    local chapter
    chapter=$(chapter_of "$1") || exit
    [[ -n $(exercises_of "$chapter") ]] ||
        bad_input "Chapter ${chapter%%_*} has no exercises; these have: $(list_exercised)."
    echo "$chapter"
}

# What a chapter's exercises/NN_name/README.md has to say:
#     # Exercise `argmax`
#     ## Task `one_block`: its title
#     its text, and then <details><summary>Hint 1</summary> ... </details>
tasks_of() {  # CHAPTER EXERCISE
    sed -n "/^# Exercise \`$2\`/,/^# Exercise \`/{ s/^## Task \`\([a-z0-9_]*\)\`.*/\1/p; }" \
        "$root/exercises/$1/README.md"
}
part_of_task() {  # CHAPTER TASK title|text|"Hint K"
    awk -v head="## Task \`$2\`: " -v wanted="$3" '
        /^#/ {
            is_here = index($0, head) == 1
            part = "text"
            if (is_here && wanted == "title") print substr($0, length(head) + 1)
            next
        }
        /^<details>/ { part = $0; gsub(/^<details><summary>|<\/summary>.*/, "", part); next }
        /^<\/details>/ { part = ""; next }
        is_here && part == wanted && (/./ || lines++) { lines++; print }
    ' "$root/exercises/$1/README.md" | sed -E 's/\[([^]]*)\]\([^) ]*[/#.][^) ]*\)/\1/g'  # a terminal has no links
}
is_solved() { grep -qx "$3" "$(record_of "$1" "$2" solved)" 2>/dev/null; }  # CHAPTER EXERCISE TASK
next_task() {                                                               # CHAPTER EXERCISE
    local task
    while read -r task; do
        is_solved "$1" "$2" "$task" || { echo "$task" && return; }
    done < <(tasks_of "$1" "$2")
}

has_begun() { [[ $(diff -q "$root/my/$(file_of "$1" "$2")" "$(stub_of "$1" "$2")" 2>/dev/null) ]]; }  # CHAPTER EXERCISE
has_solved() { [[ -z $(next_task "$1" "$2") ]]; }  # CHAPTER EXERCISE
# The exercises whose answers can take part in a chapter's program, in a bench or in what is explored, as "mine".
brought_along() { sed -n "s/^ddp_[a-z_]*($1 \([a-z0-9_]*\) .*/\1/p" "$root/exercises/CMakeLists.txt"; }  # PROGRAM
# Sets `mine` to the last of those exercises that the reader has begun or solved.
find_mine() {  # begun|solved EXERCISES, one a line
    local chapter exercise first=''
    mine=''
    [[ -n $2 ]] || bad_input "'--algorithm mine' is for: ./book run 07, ./book run 15, ./book bench all_reduce and ./book explore all_reduce."
    while read -r chapter exercise; do
        grep -qx "$exercise" <<<"$2" || continue
        first=${first:-$chapter $exercise}
        ! "has_$1" "$chapter" "$exercise" || mine=$exercise
    done < <(exercises)
    read -r chapter exercise <<<"$first"
    [[ -n $mine ]] || bad_input "--algorithm mine runs your my/$(file_of "$chapter" "$exercise"), which is not $1 yet:" \
        "./book check ${chapter%%_*} says what is next."
}

check() {
    local word chapter='' named='' asked=() with_hint=no status=0
    for word in "$@"; do
        if [[ $word == --hint ]]; then
            with_hint=yes
        elif [[ $word == -* || -n $named ]]; then
            bad_input "check takes a chapter, one of its exercises, --hint, --cpu and --gpu, but not '$word'."
        elif [[ -z $chapter ]]; then
            chapter=$(chapter_with_exercises "$word")
        else
            named=$(exercise_of "$chapter" "$word")
        fi
    done
    if [[ -z $chapter ]]; then
        say_what_is_next
        return
    fi
    mapfile -t asked < <([[ -z $named ]] && exercises_of "$chapter" || echo "$named")
    for word in "${asked[@]}"; do begin_exercise "$chapter" "$word"; done
    if [[ $with_hint == yes ]]; then
        give_hint "$chapter" "${asked[@]}"
        return
    fi
    # shellcheck source=exercises/run_task.sh
    . "$root/exercises/run_task.sh"
    prepare check
    for word in "${asked[@]}"; do check_exercise "$chapter" "$word" || status=1; done
    ((status)) || say_what_is_next "$chapter"
    return "$status"
}
# say_what_is_next [CHAPTER]: the first exercise from that chapter on that is not solved, or the first after the last one that is; and
# how long it takes.
say_what_is_next() {
    local chapter exercise next='' minutes
    while read -r chapter exercise; do
        if [[ $chapter < ${1:-} ]]; then
            continue
        elif [[ -z $(next_task "$chapter" "$exercise") ]]; then
            [[ -n ${1:-} ]] || next=''
        elif [[ -z $next ]]; then
            next="$chapter $exercise"
        fi
    done < <(exercises)
    [[ -n $next ]] || { echo "You have solved the last exercise. ./book progress shows them all." && return; }
    read -r chapter exercise <<<"$next"
    minutes=$(sed -n "/^# Exercise \`$exercise\`/,/^## /s/^\*About \(.*\)\.\*$/, about \1/p" "$root/exercises/$chapter/README.md")
    echo "Next: ./book check ${chapter%%_*} $exercise$minutes."
}
exercise_of() {  # CHAPTER EXERCISE: its name, if the chapter has it
    exercises_of "$1" | grep -xF -e "$2" ||
        bad_input "Chapter ${1%%_*} has no exercise '$2'; it has: $(exercises_of "$1" | joined)."
}
begin_exercise() {  # CHAPTER EXERCISE: from the stub, unless it has begun
    local file
    file=$(file_of "$1" "$2")
    make_own "$1"
    [[ ! -e $root/my/$file ]] || return 0
    cp "$(stub_of "$1" "$2")" "$root/my/$file"
    say "This one is for you to edit: my/$file; what it is about is in exercises/$1/README.md."
}
check_exercise() {  # CHAPTER EXERCISE: task by task, until one is not solved
    local file task solved state=solved are_solved=''
    file=my/$(file_of "$1" "$2")
    solved=$(record_of "$1" "$2" solved)
    : >"$log"
    if ! step "building $file" cmake --build "$folder" --parallel "$cores" --target "exercise_$2_mine"; then
        : >"$solved"
        explain_build "$file"
        return 1
    fi
    echo "$file"
    while read -r task; do
        if [[ $state == solved ]]; then
            run_task "$folder/bin/exercise_$2_mine" "$task" "$file"
            case $verdict in
                passed) are_solved+=$task$'\n' ;;
                missing) state=next ;;
                *) state=$verdict ;;  # wrong or busy
            esac
            task_row "$1" "$task" "$state"
            [[ $state == solved ]] || indented "$(fold -sw 96 <<<"$words")" "       "
            [[ $state != next ]] || indented "$(part_of_task "$1" "$task" text | filled 90)" "       "
        else
            task_row "$1" "$task" later
        fi
    done < <(tasks_of "$1" "$2")
    if [[ $state == busy ]]; then
        echo "  Nothing is recorded. Try again: ./book check ${1%%_*} $2"
        return 1
    fi
    printf %s "$are_solved" >"$solved"
    if [[ $state == solved ]]; then
        echo "  All of it is solved."
    else
        echo "  Stuck? ./book check ${1%%_*} $2 --hint"
        return 1
    fi
}
task_row() { printf '  %-7s%s: %s\n' "$3" "$2" "$(part_of_task "$1" "$2" title)"; }  # CHAPTER TASK STATE
indented() { sed "s/ *\$//; /./s/^/  $2/" <<<"$1"; }
explain_build() {  # FILE: what the compiler has said first, or the linker
    local error='error( #[0-9]*)?: |undefined reference|CMake Error'
    echo "$1 does not compile. The first error, in the words of the compiler:"
    sed "s|$root/||g" "$log" | grep -m1 -A4 -E "$error" | sed '/^ninja: \|^g\?make/d; s/^.*\(undefined reference\)/\1/; s/^/    /'
    echo "  All that it said is in $log."
}
give_hint() {  # CHAPTER EXERCISE...: the next one for the first task of theirs that is not solved
    local chapter=$1 exercise task hints given
    shift
    for exercise in "$@"; do
        task=$(next_task "$chapter" "$exercise")
        [[ -n $task ]] || continue
        hints=$(record_of "$chapter" "$exercise" hints)
        given=$(grep -cx "$task" "$hints" 2>/dev/null || true)
        if ((given == 3)); then
            say "There are three hints for $task, and you have seen them all. This was the last:"
        else
            echo "$task" >>"$hints"
            given=$((given + 1))
        fi
        echo "Hint $given of 3 for $task, in my/$(file_of "$chapter" "$exercise"):"
        echo
        indented "$(part_of_task "$chapter" "$task" "Hint $given" | filled 96)" ""
        return
    done
    echo "There is nothing to hint at, because this is solved: $*."
}

progress() {  # [--import FILE]
    local chapter exercise
    if [[ ${1:-} == --import && $# == 2 ]]; then
        import_predictions "$2"
        return
    fi
    (($# == 0)) || bad_input "progress takes no argument, or --import FILE: the answers of the web edition."
    printf '%-9s%-22s%-11s%-9s%s\n' chapter exercise state solved next
    while read -r chapter exercise; do
        progress_row "$chapter" "$exercise"
    done < <(exercises)
}
progress_row() {  # CHAPTER EXERCISE
    local file solved all count next state=begun
    file=$(file_of "$1" "$2")
    solved=$(record_of "$1" "$2" solved)
    all=$(tasks_of "$1" "$2" | wc -l)
    count=$(grep -c . "$solved" 2>/dev/null || true)
    next=$(next_task "$1" "$2")
    if ! has_begun "$1" "$2"; then
        state="not begun"
    elif [[ $root/my/$file -nt $solved ]]; then
        next+="${next:+, }edited since its last check"
    elif ((count == all)); then
        state='done'
    fi
    printf '%-9s%-22s%-11s%-9s%s\n' "${1%%_*}" "$2" "$state" "${count:-0} of $all" "${next:--}"
}

reset() {
    local chapter exercise backup number=1
    (($# == 1)) || bad_input "reset takes one chapter; these have exercises: $(list_exercised)."
    chapter=$(chapter_with_exercises "$1")
    [[ -e $root/my/$chapter ]] || bad_input "There is nothing to reset: you have not begun chapter ${chapter%%_*}."
    while [[ -e $root/my/backup/$chapter.$number ]]; do number=$((number + 1)); done
    backup=my/backup/$chapter.$number
    make_own backup
    mv "$root/my/$chapter" "$root/$backup"
    say "What you had is in $backup."
    for exercise in $(exercises_of "$chapter"); do begin_exercise "$chapter" "$exercise"; done
}
