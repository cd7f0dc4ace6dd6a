# Sourced by ./book: for a class. A copy of the book without solutions, and the grades of what was handed in.
# shellcheck shell=bash disable=SC2154,SC2034  # what is not set here, ./book sets, and what is not read, it reads

handout() {
    local to
    if (($# != 1)) || [[ $1 == -* ]]; then bad_input "handout takes the folder that it is to make."; fi
    [[ ! -e $1 ]] || bad_input "$1 is there already: name a folder that is not, and handout makes it."
    git -C "$root" rev-parse --git-dir &>/dev/null || fail "handout copies what git knows: call it in a clone of the book."
    mkdir -p "$1"
    to=$(cd "$1" && pwd)
    local files=(-- . ':!solutions' ':!tests/mistakes')
    comm -z23 <(git -C "$root" ls-files -z "${files[@]}" | sort -z) <(git -C "$root" ls-files -z --deleted "${files[@]}" | sort -z) |
        tar -C "$root" --null -T - -cf - | tar -C "$to" -xf -
    git -C "$to" init -q
    git -C "$to" add -A
    git -C "$to" -c user.name=book -c user.email=book@localhost commit -qm "DDP by Hand, for students"
    say "A book for students is in $to: it has the exercises and their tests, but no solutions."
}

has_predictions() {  # CLASS: whether somebody's lie there, as solutions/grade.sh reads them
    local pattern
    for pattern in {,my/}{"[0-9][0-9]_*/predictions",predictions.txt}; do
        ! (cd "$1" && compgen -G "*/$pattern" >/dev/null) || return 0
    done
    return 1
}

grade() {
    local class='' csv='' results='' file handed_in=() targets=()
    while (($#)); do
        if [[ $1 == --csv && -n ${2:-} ]]; then
            csv=$2
            shift
        elif [[ $1 == --results && -n ${2:-} ]]; then
            results=$2
            shift
        elif [[ $1 == -* || -n $class ]]; then
            bad_input "grade takes the folder of a class, --csv FILE and --results FOLDER, but not '$1'."
        else
            class=$1
        fi
        shift
    done
    [[ -n $class ]] || bad_input "grade takes the folder of a class, which has a folder for each student."
    [[ -d $class ]] || bad_input "There is no folder $class: grade takes the folder of a class."
    [[ -d $root/solutions ]] || bad_input "This is a book for students: grading takes the solutions."
    require_part tests grade
    class=$(cd "$class" && pwd)
    csv=$(realpath -- "${csv:-$class/grades.csv}")
    [[ -d ${csv%/*} && ! -d $csv && ! -L $csv ]] || bad_input "The grades cannot be written to $csv: name another file with --csv."
    if [[ -n $results ]]; then
        results=$(realpath -m -- "$results")
        [[ $results != "$class" && $results != "$class"/* && (! -e $results || -d $results) ]] ||
            bad_input "--results takes a folder outside of the class's, but not $results."
        python3 -I -c 'import json' 2>/dev/null || bad_input "--results needs python3, which this machine lacks."
    fi
    while read -r file; do
        (cd "$class" && { compgen -G "*/$file" || compgen -G "*/my/$file"; } >/dev/null) || continue
        handed_in+=("$file")
        file=${file##*/}
        targets+=("exercise_${file%.*}_solution")
    done < <(exercises | while read -r chapter exercise; do file_of "$chapter" "$exercise"; done | grep -v "\.py\$")
    [[ -n ${handed_in[*]} ]] || has_predictions "$class" ||
        bad_input "Nobody in $class has handed in anything: a file lies there as ann/09_all_reduce/halving_doubling.cu."
    wanted=cpu  # the same for everybody
    prepare grade
    ((${#targets[@]} == 0)) || build "the solutions" "${targets[@]}"
    bash "$root/solutions/grade.sh" "$folder" "$class" "$csv" "$results" "${handed_in[@]}"
    say "The grades are in $csv."
    [[ -z $results ]] || say "Each student's results.json is in $results."
    [[ ! -f ${csv%.csv}.predictions.csv ]] || say "What was predicted is in ${csv%.csv}.predictions.csv."
}
