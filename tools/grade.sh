# Sourced by ./book: for a class. A copy of the book without solutions, and the grades of what was handed in.
#
# What is handed in is compiled and run as `./book check` does it, in a sandbox (bubblewrap): without network, with processes and
# memory of its own, nothing to write that stays, and bounded in time, memory, processes and files. So it does no harm to this
# machine or to others' work. But it is compiled and linked into the program that tests it, and shares its memory. It can end that
# program early and print what a right answer prints, or change what the test looks at, and nothing here sees that. A
# teacher looks at hand-ins that surprise.
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

# ---- Grading
max_file_bytes=262144  # of a student's file
compile_seconds=120
max_processes=256      # and threads
memory_kib=$((4 << 20)) file_kib=$((1 << 20))  # of address space; of one file, which device memory is, too

grade() {
    local class chapter exercise why
    (($#)) || bad_input "grade takes the folder of a class, which has a folder for each student."
    for class in "$@"; do
        [[ $class != -* ]] || bad_input "grade takes folders of classes, but not '$class'."
        [[ -d $class ]] || bad_input "There is no folder $class: grade takes the folder of a class."
        class=$(realpath -- "$class")
        [[ $root/ != "${class%/}"/* ]] || bad_input "The book itself is in $class: grade takes the folder of a class."
        [[ -w $class && ! -d $class/grades.csv && ! -L $class/grades.csv ]] ||
            bad_input "The grades cannot be written to $class/grades.csv."
        [[ -n $(handed_in "$class") ]] ||
            bad_input "Nobody in $class has handed in anything: a file lies there as ann/09_all_reduce/halving_doubling.cu."
    done
    # shellcheck source=exercises/run_task.sh
    . "$root/exercises/run_task.sh"
    in_sandbox=(sandbox)
    task_seconds=60  # more than ./book check gives: nobody is here to try again
    wanted=cpu       # the same for everybody
    prepare grade
    make_own .
    work=$(mktemp -d)
    trap forget_answers EXIT
    make_walls
    why=$(sandbox true 2>&1) ||
        fail "Students' programs run in a sandbox or not at all, and this machine forbids to make one (${why##*$'\n'}):" \
            "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; a container needs --privileged), or grade elsewhere."
    while read -r -u 5 chapter exercise; do
        try_stub "$chapter" "$exercise"
    done 5< <(for class in "$@"; do handed_in "$class"; done | sort -u)
    for class in "$@"; do grade_class "$(realpath -- "$class")"; done
}
handed_in() {  # CLASS: the exercises, as lines "09_all_reduce halving_doubling", of which somebody has handed in an answer
    local chapter exercise file
    while read -r chapter exercise; do
        file=$(file_of "$chapter" "$exercise")
        [[ $file != *.py ]] || continue
        if (cd -- "$1" && { compgen -G "*/$file" || compgen -G "*/my/$file"; }) >/dev/null; then echo "$chapter $exercise"; fi
    done < <(exercises)
}

# ---- The sandbox
make_walls() {  # sets walls and as_nobody, for sandbox
    local path
    walls=(--unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup-try --die-with-parent --new-session)
    as_nobody=()
    if [[ $(id -u) == 0 ]]; then  # root would be above every limit
        as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all)
    else
        walls+=(--unshare-user)
    fi
    walls+=(--tmpfs / --dir /etc --dev /dev --size $((64 << 20)) --perms 1777 --tmpfs /tmp
        --size $((64 << 20)) --perms 1777 --tmpfs /dev/shm --remount-ro /dev)
    for path in /usr /bin /lib /lib32 /lib64 /etc/alternatives /etc/ld.so.cache ${CONDA_PREFIX:-}; do
        [[ ! -e $path ]] || walls+=(--ro-bind "$path" "$path")
    done
}
limited() {  # SECONDS COMMAND...
    local others=(/proc/[0-9]*/task/[0-9]*)  # of this user count, too
    ulimit -c 0 -v "$memory_kib" -f "$file_kib" -u $((${#others[@]} + max_processes))
    exec timeout --foreground -k 1 "$@" 5<&- 6<&- 9>&-  # no file of ours is open in there
}
# sandbox COMMAND...: runs it, with the program that was built last as /program. More than a megabyte of words is lost.
sandbox() {
    local program=()
    [[ ! -e ${answer:-} ]] || program=(--ro-bind "$answer" /program --dir /proc/self --symlink /program /proc/self/exe)
    (limited $((task_seconds + 3)) env -i PATH="$PATH:/usr/bin:/bin" LANG=C.UTF-8 HOME=/tmp LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" \
        CUDA_ON_CPU="${CUDA_ON_CPU:-}" DDP_MEASURES="${DDP_MEASURES:-}" \
        bwrap "${walls[@]}" "${program[@]}" --chdir /tmp --remount-ro / "${as_nobody[@]}" "$@") 2>&1 |
        { head -c 1000000 && cat >/dev/null; } | tr -d '\0'
    return "${PIPESTATUS[0]}"
}
# build_answer FILE CHAPTER EXERCISE SECONDS: builds $answer of that file, where nothing but the build's own folder can be written, and
# solutions and the class cannot be read.
build_answer() {
    local hidden=() file
    file=$work/my/$(file_of "$2" "$3")
    rm -rf "$work/my" "$answer"
    mkdir -p "${file%/*}" && cp -- "$1" "$file"
    [[ ! -d $root/solutions ]] || hidden+=(--tmpfs "$root/solutions")
    [[ -z ${class:-} ]] || hidden+=(--tmpfs "$class")
    (limited "$4" env TMPDIR="$folder" bwrap --unshare-pid --unshare-net --die-with-parent --new-session --ro-bind / / --dev /dev \
        "${hidden[@]}" --bind "$folder" "$folder" --bind "$work/my" "$root/my" \
        cmake --build "$folder" --parallel "$cores" --target "exercise_$3_mine") </dev/null
}
# What was built of others' answers must not pass for the teacher's own.
forget_answers() {
    find "$folder/exercises" -path '*/exercise_*_mine.dir/*.o' -delete
    rm -rf "$work" "$folder"/bin/exercise_*_mine
}
# The exercise's stub goes first: so all that it takes is built, and the sandbox is known to work.
try_stub() {  # CHAPTER EXERCISE
    local class='' task answer=$folder/bin/exercise_$2_mine
    step "building the test of $2" build_answer "$(stub_of "$1" "$2")" "$1" "$2" 3600 || explain "Building the test of $2 failed"
    read -r task < <(tasks_of "$1" "$2")
    run_task /program "$task"
    [[ $verdict == missing ]] || fail "The sandbox does not work here: the stub's task $task of $2 is $verdict in it: $words"
}

# ---- The class
csv_row() {  # fields, none of which begins as a spreadsheet's formula does
    local field line=
    for field in "$@"; do
        field=$(plain <<<"$field" | sed "s/\"/\"\"/g; s/^[=+@-]/'&/")
        line+=${line:+,}\"$field\"
    done
    printf '%s\n' "$line"
}
plain() { head -c 2000 | tr -s '[:cntrl:]' ' ' | sed 's/^ //; s/ $//'; }
grade_class() {  # CLASS
    local class=$1 csv=$1/grades.csv at student chapter exercise
    csv_row student exercise task verdict points words same >"$csv"
    printf '%-18s  %-30s  %-7s %s\n' student exercise points tasks
    for at in "$class"/*; do
        student=${at##*/}
        if [[ -d $at || -L $at ]]; then
            while read -r -u 5 chapter exercise; do grade_answer "$student" "$chapter" "$exercise"; done 5< <(handed_in "$class")
        fi
    done
    say "The grades are in $csv."
}
submission() {  # STUDENT CHAPTER EXERCISE: the path of the file, if there is anything
    local at file
    file=$(file_of "$2" "$3")
    for at in "$class/$1/$file" "$class/$1/my/$file"; do
        if [[ -e $at || -L $at ]]; then echo "$at" && return; fi
    done
}
refusal() {  # FILE: why it is not taken
    local at=$1
    while [[ $at != "$class" && ! -L $at ]]; do at=${at%/*}; done
    if [[ $at != "$class" ]]; then
        echo "Refused: ${at##*/} is a symbolic link, and those are not followed."
    elif [[ ! -f $1 || ! -r $1 ]]; then
        echo "Refused: this is no file that can be read."
    elif (($(stat -c %s -- "$1") > max_file_bytes)); then
        echo "Refused: the file is longer than $((max_file_bytes >> 10)) KiB."
    fi
}
# same_as STUDENT CHAPTER EXERCISE: "same as ann, bob" if theirs differs in comments and blanks only, and is not the stub.
same_as() {
    local own at file names=''
    own=$(print_of "$(submission "$@")")
    [[ $own != "$(print_of "$(stub_of "$2" "$3")")" ]] || return 0
    for at in "$class"/*; do
        file=$(submission "${at##*/}" "$2" "$3")
        [[ ${at##*/} != "$1" && -n $file && -z $(refusal "$file") && $(print_of "$file") == "$own" ]] || continue
        names+=${names:+, }${at##*/}
    done
    [[ -z $names ]] || echo "same as $names"
}
print_of() {  # FILE: what is left of it without comments and blanks
    sed 's#//.*##' "$1" | tr -d '\0[:space:]' | sed -E 's#/\*([^*]|\*+[^*/])*\*+/##g' | sha256sum
}
grade_answer() {  # STUDENT CHAPTER EXERCISE: a row of the table, and in the CSV file one for each task
    local file task state='' said='' status=0 verdict words same='' point points=0 all=0 verdicts='' answer=$folder/bin/exercise_$3_mine
    file=$(submission "$@")
    if [[ -z $file ]]; then
        state=missing said="Not handed in."
    elif said=$(refusal "$file") && [[ $said ]]; then
        state=refused
    else
        same=$(same_as "$@")
        build_answer "$file" "$2" "$3" "$compile_seconds" &>"$log" || status=$?
        if ((status)); then state=compile said=$(explain_build "my/$(file_of "$2" "$3")" | sed '$d'); fi
        if ((status == 124)); then said="It takes more than $compile_seconds s to compile."; fi
    fi
    while read -r -u 6 task; do
        verdict=$state words=$said point=0
        [[ $state ]] || judge "$task" "$file"
        all=$((all + 1)) verdicts+=${verdicts:+, }$verdict
        if [[ $verdict == passed ]]; then point=1 points=$((points + 1)) words=; fi
        csv_row "$1" "$2/$3" "$task" "$verdict" "$point" "$words" "$same" >>"$csv"
    done 6< <(tasks_of "$2" "$3")
    printf '%-18.18s  %-30.30s  %-7s %.40s\n' "$(plain <<<"$1")" "$2/$3" "$points of $all" "$verdicts"
}
judge() {  # TASK FILE: sets verdict and words, and gives a wrong answer its name
    local ended
    run_task /program "$1" "$2"
    case $verdict:$ended in
        wrong:[456]) ;;
        wrong:124 | wrong:137) verdict=hang ;;
        wrong:1[3-9][0-9] | wrong:2*) verdict=crash ;;
        wrong:*) verdict='exit' ;;
    esac
}
