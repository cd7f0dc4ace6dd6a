#!/usr/bin/env bash
# grade.sh BUILD_FOLDER CLASS CSV RESULTS EXERCISE...: what `./book grade` does once the solutions are built. CLASS has a
# folder for each student, in it 09_all_reduce/halving_doubling.cu, or the same in my/; an EXERCISE is named so, too. RESULTS
# is the folder for results.json files, or empty.
#
# A student's file is compiled, linked with the instructor's tests and run, and none of this is trusted:
# - Each step runs in a sandbox (bubblewrap): without network, with its own processes, with the system and what
#   the step needs to read, and nothing to write but what is thrown away; bounded in time, memory, processes, files.
# - No file of the grader is open in there, and nothing of /proc is there.
# - An answer may define what its contract declares, and helpers; it may use C++, the book, and of the system what only
#   computes or prints, and no asm (solutions/object_rules.sh).
# - A task is passed if the test gives back, through a pipe of its own, a random number for each assertion that
#   holds in the solution's run, and the line of that assertion (exercises/support/tasks_main.cpp); and the program
#   then ends as it should. This process hands the numbers out one by one.
# Student and test share an address space, so a student who writes an exploit for this very program can still forge
# a run: by a jump into bytes that happen to be a system call, or into what the test itself calls. Read what gets full
# points and looks odd, and ask its author.
set -euo pipefail
root=$(cd "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=exercises/run_task.sh
. "$root/exercises/run_task.sh"
# shellcheck source=solutions/object_rules.sh
. "$root/solutions/object_rules.sh"

build=$(cd "$1" && pwd) class=$2 csv=$3 results=$4
shift 4
exec 3<&- 4>&-  # the test's two pipes have these numbers, and nothing else
most_bytes=262144     # of a student's file
task_seconds=60       # more than ./book check gives: the machine may have the whole class to do
compile_seconds=120
most_processes=256    # and threads, of all submissions that are compiled or run at the time
memory_kib=$((4 << 20)) file_kib=$((1 << 20))  # of address space; of one file, which device memory is, too
object_kib=$((64 << 10))  # of an object file, and of a program

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/numbers"
fail() { printf '%s\n' "$*" >&2 && exit 1; }
bounded() { head -c "$1" && cat >/dev/null; }  # the rest is read, or its writer would be stopped

# ---- The sandbox ---------------------------------------------------------------------------------
walls=(--unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup-try --die-with-parent --new-session
    --tmpfs / --dir /etc --dev /dev --size $((64 << 20)) --perms 1777 --tmpfs /tmp
    --size $((64 << 20)) --perms 1777 --tmpfs /dev/shm --remount-ro /dev)
as_nobody=() others=(/proc/[0-9]*/task/[0-9]*)
if [[ $(id -u) == 0 ]]; then  # root would be above every limit
    as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all)
    others=()
else
    walls+=(--unshare-user)
fi
for path in /usr /bin /lib /lib32 /lib64 /etc/alternatives /etc/ld.so.cache; do
    [[ ! -e $path ]] || walls+=(--ro-bind "$path" "$path")
done

# bind OPTION FROM TO: an option for bubblewrap, into $shown, with folders around TO that anybody may pass.
bind() {
    local folder='' part parts
    IFS=/ read -ra parts <<<"${3%/*}"
    for part in "${parts[@]:1}"; do
        folder+=/$part
        shown+=(--dir "$folder")
    done
    shown+=("$@")
}
show() { bind --ro-bind "$1" "${2:-$1}"; }

# sandbox SECONDS bwrap's options... -- command...
sandbox() {
    local seconds=$1 more=()
    shift
    while [[ $1 != -- ]]; do more+=("$1") && shift; done
    shift
    (
        for descriptor in /proc/self/fd/*; do
            descriptor=${descriptor##*/}
            if ((descriptor > 4)); then exec {descriptor}>&-; fi
        done
        ulimit -c 0 -v "$memory_kib" -f "$file_kib" -u $((${#others[@]} + most_processes))  # others of this user count, too
        echo 1000 >/proc/self/oom_score_adj  # the first to go if the machine has no memory left
        exec timeout --foreground -k 1 "$seconds" env -i PATH="$PATH:/usr/bin:/bin" LANG=C.UTF-8 HOME=/tmp \
            LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" CPATH="${CPATH:-}" CPLUS_INCLUDE_PATH="${CPLUS_INCLUDE_PATH:-}" \
            bwrap "${walls[@]}" "${more[@]}" --remount-ro / "${as_nobody[@]}" "$@"
    )
}
why=$(sandbox 10 -- true 2>&1) ||
    fail "Students' programs run in a sandbox or not at all, and this machine forbids to make one (${why##*$'\n'}):" \
        "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; a container needs --privileged), or grade elsewhere."

# ---- Compiling -----------------------------------------------------------------------------------
# Commands are those by which the solution was built, with the student's file where the solution is. `own` is
# where an answer's object and program go, beside its `log`.
commands_of() {  # EXERCISE: sets compile, link, object, and shown: what the sandbox shows for them
    local name=${1##*/} step folder word words named assembly before=()
    name=${name%.*}
    compile=$(cat "$build/exercises/$name.COMPILER")
    link=$(cat "$build/exercises/$name.LINKER")
    shown=()
    for word in "$root"/{common,chapters} "$root"/exercises/{,[0-9]*/}*.hpp; do show "$word"; done  # no test
    for step in "$compile" "$link"; do
        eval "folder=$(cut -d' ' -f2- <<<"${step%% && *}") words=(${step#* && })"  # "cd folder && words of a command"
        mapfile -t named < <(cd "$folder" && realpath -ms -- "${words[@]#-I}")
        for word in "${named[@]}"; do
            case $word in
                */exercise_"${name}"_solution*.o) object=$word ;;
                "$build"/*.[ao]) show "$word" ;;
                "$build"/*/cmake_pch.hxx) show "${word%/*}" ;;
                "$root"* | /usr/* | /bin/* | /lib/* | /dev/*) ;;
                *) [[ ! -e $word ]] || show "$(sed -E 's#/(bin|include|lib|lib64)(/.*)?$##' <<<"$word")" ;;  # conda, module load
            esac
        done
    done
    # By way of assembly, which shows what the compiler has not made itself.
    assembly=${object%.o}.s
    compile+=" -S && mv ${object@Q} ${assembly@Q} && ${words[0]@Q} -c ${assembly@Q} -o ${object@Q}"
    # The answer comes behind all else: where two define the same inline function, the linker takes the first. In a group
    # the libraries are searched for it all the same. The program's tables of addresses cannot be written, nor data be run.
    for word in "${words[@]}"; do
        [[ $word == */exercise_"$name"_solution*.o ]] || before+=("$word")
    done
    link="cd ${folder@Q} && ${before[0]@Q} -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--start-group"
    for word in "${before[@]:1}" "$object"; do link+=" ${word@Q}"; done
    link+=" -Wl,--end-group"
}
# keep_own_functions OBJECT: an answer in CUDA is compiled so that its races are seen. So it keeps its own copies of the inline
# functions that the test has, too: in the test's nobody would see what they do. Nothing of it runs before the test.
keep_own_functions() {
    nm -P "$1" | awk '$2 == "W" { print $1 }' >"$1.inline" &&
        ld -r --force-group-allocation "$1" -o "$1.whole" &&
        objcopy --localize-symbols="$1.inline" --remove-section='*.init_array.00099' "$1.whole" "$1"
}
# compile_answer FILE EXERCISE: makes $own/program, or leaves in $own/verdict and $own/log why not.
compile_answer() {
    local compile link object shown file_kib=$object_kib own=${1%/*} name=${2##*/}
    name=${name%.*}
    commands_of "$2"
    mkdir -m 777 "$own/object" "$own/bin"
    show "$1" "$root/solutions/$2"
    bind --bind "$own/object" "${object%/*}"
    bind --bind "$own/bin" "$build/bin"
    if ! sandbox "$compile_seconds" "${shown[@]}" -- bash -c "$compile" 2>&1 </dev/null | bounded 100000 >"$own/log"; then
        echo compile >"$own/verdict"
    # std::atomic's wait() is compiled to a call of syscall(): it gets one that can do this only.
    elif ! objcopy --redefine-sym syscall=ddp_futex "$own/object/${object##*/}" 2>"$own/log" ||
        ! has_only_usual "$own/object/${object##*/}" "$work/solution/$2/object.o" "$work/$2.symbols" >"$own/log"; then
        if grep -q '^Refused' "$own/log"; then echo refused; else echo forged; fi >"$own/verdict"
    elif [[ $2 == *.cu ]] && ! keep_own_functions "$own/object/${object##*/}" 2>"$own/log"; then
        echo compile >"$own/verdict"
    elif ! sandbox "$compile_seconds" "${shown[@]}" -- bash -c "$link" 2>&1 </dev/null | bounded 100000 >"$own/log"; then
        echo compile >"$own/verdict"
    else
        mv "$own/bin/exercise_${name}_solution" "$own/program"
    fi
    rm -rf "${own:?}/object" "${own:?}/bin"
}
first_error() {  # LOG EXERCISE
    local first
    first=$(grep -m1 -A2 -E '[Ee]rror( #[0-9]*)?: |undefined reference|multiple definition' "$1" | sed "s|$root/||g; s|solutions/||g")
    echo "Does not compile: ${first:-it takes longer than $compile_seconds s, or more memory than it may.}"
}

# ---- Running -------------------------------------------------------------------------------------
random_lines() { od -An -v -tx1 -w16 -N $(($1 * 16)) /dev/urandom | tr -d ' '; }

# tell: hands out a random number for each assertion that may hold and one more, each when the one before has come back on
# stdin with the line of its assertion. The lines go to $work/told, and "forged" if it was not the test that has written.
tell() {
    local numbers number report
    trap '' PIPE  # a program may end, or close its pipe, before it has taken its number
    mapfile -t numbers < <(random_lines $((assertions + 1)))
    {
        for number in "${numbers[@]}"; do
            echo "$number" >&6 || true
            IFS= read -r -n 1000 report || break
            [[ $report == "$number "* ]] || { echo forged && break; }
            echo "${report#* }"
        done
    } 6<>"$work/numbers" >"$work/told" 2>/dev/null  # to read, too: so it waits for no program that never began
    cat >/dev/null
}

# run_in_order PROGRAM TASK ORDER, for run_task: as it does it, in the sandbox, with a report. $verdict can
# become forged, too. The file $lines.yes has the lines of the assertions of the solution's run, $lines.no those of a run in which no
# times are measured, and $lines.noraces, those of one that looks for races; the solution's first run has no such file yet.
run_in_order() {
    local expected=$lines.${measures:-yes}${races-} assertions=5000
    [[ ! -f $expected ]] || assertions=$(wc -l <"$expected")
    # The program's words go one way, its report (4 there, 5 here) another one.
    {
        {
            sandbox "$task_seconds" --ro-bind "$1" /program --dir /proc/self --symlink /program /proc/self/exe --chdir /tmp \
                --setenv DDP_GRADED yes --setenv CUDA_ON_CPU "strict,${races-}timeout=$kernel_seconds,order=$3" \
                --setenv DDP_MEASURES "${measures:-yes}" -- /program "$2" \
                3<"$work/numbers" 4>&5 5>&- 2>&1 </dev/null && ended=0 || ended=$?
            echo "$ended" >"$work/ended"
        } | bounded 2000 5>&- >"$work/words"
    } 5>&1 2>/dev/null | tell
    ended=$(cat "$work/ended")
    words=$(tr -d '\0' <"$work/words")
    LC_ALL=C sort -o "$work/told" "$work/told"
    verdict=wrong
    if grep -qx forged "$work/told"; then
        verdict=forged
        words="Something else than the tests has written into the grader's pipe."
    elif [[ $ended == 0 ]] && cmp -s "$work/told" "$expected"; then
        verdict=passed
    elif [[ $ended == 3 ]]; then
        verdict=missing
    elif [[ $ended == 137 ]]; then  # not by the clock: that would be 124
        verdict=crash
        words="Your code was killed: it has taken more memory than there is, or has killed itself."
    fi
}

# judge PROGRAM TASK EXERCISE: sets verdict and words, and gives a wrong answer its name.
judge() {
    local lines=$work/$3.$2 ended attempt
    for attempt in 1 2 3; do
        run_task "$1" "$2" "$3"
        [[ $verdict == busy && $attempt != 3 ]] || break
    done
    [[ $verdict == wrong ]] || return 0
    case $ended in
        4 | 5 | 6) ;;
        124 | 137) verdict=hang ;;
        *) if ((ended > 128)); then verdict=crash; else verdict='exit'; fi ;;
    esac
}

# learn_lines PROGRAM TASK: writes $lines.$measures$races by a run of the solution, and tries another one. A busy machine gets more chances.
learn_lines() {
    local attempt
    for attempt in 1 2 3 4 5; do
        rm -f "$lines.$measures$races"
        run_in_order "$1" "$2" forward
        [[ $ended == 0 && -s $work/told ]] || continue
        mv "$work/told" "$lines.$measures$races"
        run_in_order "$1" "$2" reversed
        [[ $verdict != passed ]] || return 0
    done
    return 1
}
# The solution goes the same way first: so the sandbox is known to work, and the assertions are known.
prepare_exercise() {  # EXERCISE
    local own=$work/solution/$1 name=${1##*/} compile link object shown lines measures races verdict words ended task
    mkdir -p "$own" "$work/${1%/*}"
    cp "$root/solutions/$1" "$own/answer"
    chmod 644 "$own/answer"
    commands_of "$1"
    cp "$object" "$own/object.o"
    taken_symbols "$build/bin/exercise_${name%.*}_solution" "$own/object.o" >"$work/$1.symbols"
    compile_answer "$own/answer" "$1"
    [[ -f $own/program ]] || fail "The solution of $1 cannot be built in the sandbox: $(cat "$own/log")"
    "$own/program" --list >"$work/$1.tasks"
    while read -r task; do
        lines=$work/$1.$task
        while read -r measures races; do
            learn_lines "$own/program" "$task" || fail "The solution's own $task of $1 is not passed in the sandbox: $words"
        done < <(printf '%s\n' yes no 'no races,')
    done <"$work/$1.tasks"
}

# ---- The class -----------------------------------------------------------------------------------
submission() {  # STUDENT'S FOLDER EXERCISE: the path of the file, if there is anything
    local at
    for at in "$1/$2" "$1/my/$2"; do
        if [[ -e $at || -L $at ]]; then echo "$at" && return; fi
    done
}
declare -A prints  # by "exercise/student"; those of the stub and the solution by "exercise" alone, with a word in front
# print_of FILE: what is left of it without comments and blanks, as a hash.
print_of() {
    local LC_ALL=C
    sed 's#//.*##' "$1" | tr -d '\0[:space:]' | sed -E 's#/\*([^*]|\*+[^*/])*\*+/##g' | sha256sum | cut -d' ' -f1
}
same_as() {  # STUDENT EXERCISE: the others who have handed in the same, unless it is the stub
    local own=${prints[$2/$1]:-} other names=
    [[ -n $own && $own != "${prints[stub $2]}" ]] || return 0
    [[ $own != "${prints[solution $2]}" ]] || names="the book's solution"
    for other in "${students[@]}"; do
        [[ $other == "$1" || ${prints[$2/$other]:-} != "$own" ]] || names+=${names:+, }$other
    done
    [[ -z $names ]] || echo "same as $names"
}
# take FILE OWN EXERCISE/STUDENT: a copy of what was handed in, as $2/answer, or the reason why not in $2/verdict and $2/log.
take() {
    local at=$1
    mkdir -p "$2"
    while [[ ${#at} -gt ${#class} && ! -L $at ]]; do at=${at%/*}; done
    if [[ -L $at && ${#at} -gt ${#class} ]]; then
        echo "Refused: ${at##*/} is a symbolic link, and those are not followed." >"$2/log"
    elif [[ ! -f $1 || ! -r $1 ]]; then
        echo "Refused: this is no file that can be read." >"$2/log"
    elif (($(stat -c %s "$1") > most_bytes)); then
        echo "Refused: the file is longer than $((most_bytes >> 10)) KiB." >"$2/log"
    else
        cp "$1" "$2/answer" && chmod 644 "$2/answer"
        prints[$3]=$(print_of "$2/answer")
        return
    fi
    echo refused >"$2/verdict"
}

progress() {  # progress DONE OF WHAT: on a terminal only
    local bar left
    [[ -t 2 ]] || return 0
    printf -v bar '%*s' $(($1 * 30 / $2)) ''
    printf -v left '%*s' $((30 - ${#bar})) ''
    end_progress
    printf '[%s%s] %s of %s  %.50s' "${bar// /#}" "${left// /.}" "$1" "$2" "$3" >&2
}
end_progress() { [[ ! -t 2 ]] || printf '\r\e[K' >&2; }
plain() { tr -s '[:cntrl:]' ' ' | sed 's/^ //; s/ $//'; }
csv_row() {  # fields, none of which begins as a spreadsheet's formula does
    local field line=
    for field in "$@"; do
        field=$(plain <<<"$field" | sed "s/\"/\"\"/g; s/^[=+@-]/'&/")
        line+=${line:+,}\"$field\"
    done
    printf '%s\n' "$line"
}

grade_answer() {  # STUDENT EXERCISE OWN: a row of the table, and of the CSV and of $work/rows one for each task
    local task verdict words same point verdicts='' points=0 all=0
    same=$(same_as "$1" "$2")
    while read -r task; do
        point=0
        if [[ -f $3/verdict ]]; then
            verdict=$(cat "$3/verdict") words=$(cat "$3/log")
            [[ $verdict != compile ]] || words=$(first_error "$3/log")
        elif [[ -f $3/program ]]; then
            judge "$3/program" "$task" "$2"
        else
            verdict=missing words="Not handed in."
        fi
        all=$((all + 1)) verdicts+=${verdicts:+, }$verdict
        if [[ $verdict == passed ]]; then point=1 points=$((points + 1)) words=; fi
        csv_row "$1" "${2%.*}" "$task" "$verdict" "$point" "$words" "$same" >>"$csv"
        printf '%s\0' "${2%.*}" "$task" "$verdict" "$point" "$words" >>"$work/rows"
    done <"$work/$2.tasks"
    rm -f "$3/program"
    printf '%-18.18s  %-30.30s  %-7s %.40s\n' "$(plain <<<"$1")" "${2%.*}" "$points of $all" "$verdicts"
}

# ---- Predictions: nobody judges them, so they are read and not graded
# read_answers FILE [CHAPTER]: into $answers, by "chapter number", what was answered to questions that the book asks. The file is the web
# edition's, which names its chapters, or what `./book run NN --predict` keeps of one. The last answer counts.
read_answers() {
    local line chapter=${2:-}
    while IFS= read -r line; do
        if [[ $line =~ ^##\ ([0-9]{2}_[a-z_0-9]+)$ ]]; then
            chapter=${BASH_REMATCH[1]}
        elif [[ $line =~ ^([0-9]+)\.\ (.*)$ && -n ${asked["$chapter ${BASH_REMATCH[1]}"]:-} ]]; then
            answers["$chapter ${BASH_REMATCH[1]}"]=${BASH_REMATCH[2]}
        fi
    done < <(tr -d '\r\0' <"$1")
}
# The numbers of a chapter's questions. (In a shell of its own: other functions of that file have the names of some here.)
questions_of() {  # CHAPTER'S FOLDER
    (
        # shellcheck source=tools/predictions.sh
        . "$root/tools/predictions.sh"
        predictions "$1/README.md" "Predict first" numbers
    )
}
# write_predictions FILE: a row for each answer of each student. There is no file if there is no answer.
write_predictions() {
    local student chapter number at own=$work/predictions
    local -A asked answers
    for at in "$root"/chapters/[0-9][0-9]_*; do
        for number in $(questions_of "$at"); do asked["${at##*/} $number"]=yes; done
    done
    rm -f "$1"
    for student in "${students[@]}"; do
        answers=()
        for at in "$class/$student"/{,my/}{[0-9][0-9]_*/predictions,predictions.txt}; do
            [[ -e $at || -L $at ]] || continue
            rm -rf "$own"
            take "$at" "$own" "predictions/$student"
            chapter=${at%/*}
            [[ ! -f $own/answer ]] || read_answers "$own/answer" "${chapter##*/}"
        done
        while read -r chapter number; do
            [[ -n $chapter ]] || continue
            [[ -f $1 ]] || csv_row student chapter question predicted >"$1"
            csv_row "$student" "$chapter" "$number" "${answers["$chapter $number"]}" >>"$1"
        done < <(printf '%s\n' "${!answers[@]}" | sort -k 1,1 -k 2,2n)
    done
}

students=()
for folder in "$class"/*; do
    if [[ -d $folder || -L $folder ]]; then students+=("${folder##*/}"); fi
done
all=$((${#students[@]} * $#)) done=0
for exercise in "$@"; do
    progress 0 $((2 * all)) "trying the solution of $exercise"
    prepare_exercise "$exercise"
    prints["stub $exercise"]=$(print_of "$root/exercises/${exercise%.*}/stub.${exercise##*.}")
    prints["solution $exercise"]=$(print_of "$root/solutions/$exercise")
done
for student in "${students[@]}"; do
    for exercise in "$@"; do
        progress $((done++)) $((2 * all)) "compiling $student, ${exercise##*/}"
        file=$(submission "$class/$student" "$exercise")
        [[ -n $file ]] || continue
        own=$work/class/$student/$exercise
        take "$file" "$own" "$exercise/$student"
        [[ ! -f $own/answer ]] || compile_answer "$own/answer" "$exercise" &
        while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n || true; done
    done
done
wait
end_progress
csv_row student exercise task verdict points words same >"$csv"  # no file is open while a student's program runs
printf '%-18s  %-30s  %-7s %s\n' student exercise points tasks
for student in "${students[@]}"; do
    : >"$work/rows"
    for exercise in "$@"; do
        progress $((done++)) $((2 * all)) "running $student, ${exercise##*/}"
        line=$(grade_answer "$student" "$exercise" "$work/class/$student/$exercise")
        end_progress
        printf '%s\n' "$line"
    done
    if [[ -n $results ]]; then
        mkdir -p -- "$results/$student"
        python3 "$root/solutions/results_json.py" <"$work/rows" >"$results/$student/results.json"
    fi
done
write_predictions "${csv%.csv}.predictions.csv"
