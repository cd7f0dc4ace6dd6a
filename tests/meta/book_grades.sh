#!/usr/bin/env bash
# ./book grade: a class in which everybody has an idea how to get points. Each is scored and named as it must be,
# and nobody leaves a file or a process behind.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
if [[ ! -d $root/solutions ]]; then
    echo "SKIPPED: a book for students has nothing to grade with"
    exit
fi
export PATH
PATH=$(machine_without nvidia-smi apt-get)
here="$scratch/a book"
little_book "$here"
cd "$here" || exit 1
little_exercise
# The test compares by an inline function that stands in a library.
sed -i 's/yours != right/!is_same(yours, right)/; s/^static void require/bool is_same(int, int);\n&/' exercises/01_line/slope/test.cpp
cat >>exercises/support/tasks_main.cpp <<'END'
template <class T>
[[gnu::noipa]] bool same(T a, T b) {
    return a == b;
}
namespace ddp::test {
bool is_same(int a, int b) {
    return same(a, b);
}
}  // namespace ddp::test
END
class="$scratch/a class"

hand_in() { mkdir -p "$class/$1/01_line" && cat >"$class/$1/01_line/slope.cpp"; }  # STUDENT, and the file on stdin
answer() { sed "$2" solutions/01_line/slope.cpp | hand_in "$1"; }                  # the solution, changed
# attack FILE: the code of one of grader_attacks/. In the file stand above it what it tries, and the verdicts that it must get with
# words of the grader's.
attack() {
    printf '#include <%s>\n' csignal cstdint cstdio cstdlib dirent.h dlfcn.h ext/stdio_filebuf.h fcntl.h fstream iostream \
        source_location string sys/mman.h sys/uio.h sys/wait.h thread unistd.h vector
    echo '#include "exercises/01_line/slope.hpp"'
    echo 'namespace ddp::test { void held(const std::source_location& = std::source_location::current()); }'
    echo '#line 1 "the answer"'
    sed "1,/^---\$/d; s|@here|$here|g; s|@class|$class|g; s|@scratch|$scratch|g" "$1"
}

expect_sentence 2 "grade takes the folder of a class, which has a folder for each student." ./book grade
expect_sentence 2 "There is no folder nowhere: grade takes the folder of a class." ./book grade nowhere
expect_sentence 2 "grade takes the folder of a class, --csv FILE and --results FOLDER, but not '--cvs'." ./book grade . --cvs x
mkdir -p "$class/empty"
expect_sentence 2 "--results takes a folder outside of the class's, but not $class/results." \
    ./book grade "$class" --results "$class/results"
expect_sentence 2 "Nobody in $class has handed in anything: a file lies there as ann/09_all_reduce/halving_doubling.cu." \
    ./book grade "$class"

# Predictions alone are something: they are listed, and there is nothing to grade.
cp chapters/01_line/README.md "$scratch/kept"
printf '\n## Predict first\n\n1. A?\n' >>chapters/01_line/README.md
for place in predictions.txt my/01_line/predictions; do
    mkdir -p "$class/empty/my/01_line"
    printf '## 01_line\n1. yes\n' >"$class/empty/$place"
    expect 0 "What was predicted is in $scratch/alone.predictions.csv." ./book grade "$class" --csv "$scratch/alone.csv"
    [[ $(<"$scratch/alone.predictions.csv") == *$'\n"empty","01_line","1","yes"' ]] || complain "$place is not listed"
    [[ $(<"$scratch/alone.csv") == '"student","exercise","task","verdict","points","words","same"' ]] || complain "something is graded"
    rm -r "$class/empty"
done
cp "$scratch/kept" chapters/01_line/README.md
mkdir -p "$class/empty"

# Without bubblewrap, and where it may not make a sandbox, nothing of a student's is run.
answer right ''
real_bwrap=$(readlink -f "$(command -v bwrap)")
rm -f "$PATH/bwrap"
expect 1 "This machine lacks bubblewrap: install it by one of these lines" ./book grade "$class"
[[ $output == *"    apt install bubblewrap"* ]] || complain "it is not said what to install: $output"
printf '#!/bin/sh\necho "bwrap: No permissions to create a new namespace" >&2\nexit 1\n' >"$PATH/bwrap"
chmod +x "$PATH/bwrap"
expect 1 "this machine forbids to make one (bwrap: No permissions to create a new namespace):" ./book grade "$class"
[[ ! -e $class/grades.csv ]] || complain "there are grades all the same"
rm "$PATH/bwrap"
[[ -z $real_bwrap ]] || ln -s "$real_bwrap" "$PATH/bwrap"
if ! command -v bwrap >/dev/null || ! bwrap --unshare-pid --ro-bind / / true 2>"$scratch/why" &&
    ! bwrap --unshare-user --unshare-pid --ro-bind / / true 2>"$scratch/why"; then
    echo "SKIPPED: no grading here: bubblewrap is missing, or may not make namespaces ($(tail -n 1 "$scratch/why"))"
    finish
fi

# Where the sandbox ends before a program begins, the grader says so, and gives no grades.
rm "$PATH/bwrap"
printf '#!/bin/sh\ncase "$*" in *" /program "*) exit 1 ;; esac\nexec %s "$@"\n' "$real_bwrap" >"$PATH/bwrap"
chmod +x "$PATH/bwrap"
expect 1 "The solution's own up of 01_line/slope.cpp is not passed in the sandbox" timeout 120 ./book grade "$class"
rm "$PATH/bwrap"
ln -s "$real_bwrap" "$PATH/bwrap"

# part FUNCTION: the grader's function, by itself.
part() { sed -n "/^$1() {/,/^}/p" "$root/solutions/grade.sh"; }
# A program that never began asks for no number, and nobody waits for it.
(
    work="$scratch/part" assertions=1
    mkdir "$work" && mkfifo "$work/numbers"
    export work assertions
    timeout 20 bash -c "random_lines() { echo 1 && echo 2; }"$'\n'"$(part tell)"$'\n''tell </dev/null'
) || complain "numbers are kept for a program that never began"
# An answer keeps its own copy of an inline function that the test has, too.
(
    cd "$scratch/part"
    printf 'inline int which() { return MARK; }\nint NAME() { return which(); }\n' >whose.cpp
    for whose in "test 1" "answer 2"; do
        g++ -c -O0 -DNAME="${whose% *}" -DMARK="${whose#* }" whose.cpp -o "${whose% *}.o"
    done
    printf 'int test();\nint answer();\nint main() { return 10 * test() + answer(); }\n' >main.cpp
    bash -c "$(part keep_own_functions)"$'\n''keep_own_functions answer.o'
    g++ main.cpp test.o answer.o -o whose && ended=0 || ended=$?
    [[ $ended == 0 ]] && { ./whose || ended=$?; }
    [[ $ended == 12 ]]
) || complain "the answer calls the test's copy of an inline function"

# ---- Honest ones
mkdir -p "$class/in_my/my/01_line" && cp solutions/01_line/slope.cpp "$class/in_my/my/01_line"
hand_in 'stub, "first"' <exercises/01_line/slope/stub.cpp
answer mutant 's/return 2 /return 3 /'
answer half 's/return -2 \* run/throw 42/'
answer typo 's/return 2 \* run/return 2 * ran/'
answer loop 's/return 2 /for (volatile int i = 0;; i = 1); return 2 /'
answer null 's/return -2 \* run/return *reinterpret_cast<volatile int*>(8)/'
answer abort 's/return -2 \* run/__builtin_abort()/'
# A buffer on the stack, and what lies above it.
answer overflow 's/return 2 \* run/volatile char a[8]; for (long i = 0; i < 1 << 24; i++) a[i] = 1; return a[run]/'

{
    printf '#include <%s>\n' atomic barrier iostream map memory mutex regex semaphore sstream thread vector
    sed 's/return 2 /const std::jthread wakes([] { ready = 1; ready.notify_all(); }); ready.wait(0); std::cout << std::endl; return 2 /
        /^int rise/i static std::atomic<int> ready;' solutions/01_line/slope.cpp
} | hand_in threads
# Two have copied: one has other words and blanks about the same code, one has the solution.
answer copy '1i// mine
    s/return 2 /return 4 /; s|return -2|/* down */ return -2|; s/ /  /g'
answer original 's/return 2 /return 4 /'

# ---- Attacks
answer exits 's/return 2 \* run/__builtin_exit(0)/'
attacks=("$root"/tests/meta/grader_attacks/*.attack)
for file in "${attacks[@]}"; do
    name=$(basename "$file" .attack)
    attack "$file" | hand_in "$name"
done
mkdir -p "$class"/{link,pipe,long}/01_line
ln -s "$here/solutions/01_line/slope.cpp" "$class/link/01_line"
ln -s right "$class/linked_folder"
mkfifo "$class/pipe/01_line/slope.cpp"
head -c 300000 /dev/zero | tr '\0' ' ' >"$class/long/01_line/slope.cpp"

# Predictions, of the web edition and of a terminal: what the book does not ask is no answer, and the last answer counts.
printf '\n## Predict first\n\n1. A?\n2. B?\n' >>chapters/01_line/README.md
printf '## 01_line\n# 2026-01-01 10:00\n1. =1+1, or "x"\r\n3. c\n## 02_slope\n1. d\n## ../01_line\n2. e\n' >"$class/right/predictions.txt"
printf '1. a\n2. b\n# 2026-01-02 10:00\n2. 4 MB\n' >"$class/in_my/my/01_line/predictions"
ln -s "$class/right/predictions.txt" "$class/link/predictions.txt"
mkfifo "$class/pipe/predictions.txt"

sed -i 's/^task_seconds=60 /task_seconds=4 /; s/^most_processes=256 /most_processes=40 /' solutions/grade.sh
echo 'is_busy() { false; }' >>exercises/run_task.sh  # or the machine's other work would be in the verdicts
expect 0 "The grades are in $scratch/grades.csv."$'\n'"Each student's results.json is in $scratch/results." \
    ./book grade "$class" --csv "$scratch/grades.csv" --results "$scratch/results"
table=$output
diff - "$scratch/grades.predictions.csv" <<'END' || complain "the predictions are others"
"student","chapter","question","predicted"
"in_my","01_line","1","a"
"in_my","01_line","2","4 MB"
"right","01_line","1","'=1+1, or ""x"""
END
[[ $output == *"What was predicted is in $scratch/grades.predictions.csv."* ]] || complain "nothing is said of predictions"
[[ ! -e $class/grades.csv ]] || complain "--csv is not heeded"
(($(wc -L <<<"$table") <= 100)) || complain "the table is wider than 100 columns"
[[ $table == *"half                01_line/slope                   1 of 2  passed, wrong"* ]] || complain "the table: $table"

# complete CLASS CSV: the table has a row for each student and task, each once, and a head.
complete() {
    local students=("$1"/*)
    [[ $(wc -l <"$2") == $((2 * ${#students[@]} + 1)) ]] || complain "$2 has $(wc -l <"$2") lines for ${#students[@]} students of two tasks"
    local twice
    twice=$(sed -E 's/^(("([^"]|"")*",){3}).*/\1/' "$2" | sort | uniq -d)
    [[ -z $twice ]] || complain "somebody is graded twice: $twice"
}
# is STUDENT VERDICT_OF_UP VERDICT_OF_DOWN WORDS
is() {
    local rows
    rows=$(grep -F "\"$1\",\"01_line/slope\"," "$grades")
    [[ $(wc -l <<<"$rows") == 2 && $rows == *'"up","'"$2"'","'*'"down","'"$3"'","'* && $rows == *"$4"* ]] ||
        complain "$1 should be $2, $3, with '$4': $rows"
    [[ $(grep -c '"passed","1",""' <<<"$rows" || true) == "$(grep -cx passed <<<"$2"$'\n'"$3" || true)" ]] ||
        complain "the points of $1: $rows"
}
grades=$scratch/grades.csv
complete "$class" "$grades"
is right passed passed ''
is in_my passed passed ''
is empty missing missing "Not handed in."
is 'stub, ""first""' missing missing "Task up is not implemented yet."
is mutant wrong passed "You say 9, right is 6."
is threads passed passed ''
is half passed wrong "Your code has thrown something that is not a std::exception."
is typo compile compile "Does not compile: 01_line/slope.cpp:4:16: error: "
is loop hang passed "Stopped after 4 s: a loop has no end, or far too much work, or this machine is busy."
is null passed crash "it reads or writes where it may not"
is abort passed crash "something in it has called abort()"
is overflow crash passed "Your code has crashed"
is exits refused refused "Refused: your file uses \`exit\`, which no answer needs."
is copy wrong passed '"","same as original"'
is original wrong passed '"","same as copy"'
is right passed passed "\"same as the book's solution, in_my\""
[[ $(grep -F '"stub, ""first""' "$grades" | grep -c ',""$') == 2 ]] || complain "the stub is taken for a copy"
for file in "${attacks[@]}"; do
    words=$(sed -n '1,/^---$/s/^says: //p' "$file")
    read -ra verdicts < <(sed -n '1,/^---$/s/^is: //p' "$file")
    is "$(basename "$file" .attack)" "${verdicts[0]}" "${verdicts[1]}" "$words"
done
is link refused refused "Refused: slope.cpp is a symbolic link"
is linked_folder refused refused "Refused: linked_folder is a symbolic link"
is pipe refused refused "Refused: this is no file that can be read."
is long refused refused "Refused: the file is longer than 256 KiB."

# The same for autograders, one file for each student.
[[ $(find "$scratch/results" -name results.json | wc -l) == $(find "$class" -mindepth 1 -maxdepth 1 | wc -l) ]] ||
    complain "not everybody has a results.json: $(ls "$scratch/results")"
python3 - "$scratch/results" <<'END' || complain "results.json is not as it should be"
import json, sys
def tests(student):
    with open(f"{sys.argv[1]}/{student}/results.json") as file:
        return [(t["name"], t["score"], t["max_score"], t["status"], t["output"]) for t in json.load(file)["tests"]]
assert tests("right") == [(f"01_line/slope: {task}", 1, 1, "passed", "passed") for task in ("up", "down")], tests("right")
assert tests("mutant")[0] == ("01_line/slope: up", 0, 1, "failed", "wrong: You say 9, right is 6."), tests("mutant")
assert tests('stub, "first"')[1][4] == "missing: Task down is not implemented yet.", tests('stub, "first"')
END

# ---- A machine on which nobody can tell whether a loop ends: three attempts, and no word of wrong.
rm -rf "$class"
answer loop 's/return 2 /for (volatile int i = 0;; i = 1); return 2 /'
echo "is_busy() { others=9; echo >>$scratch/attempts; }" >>exercises/run_task.sh
grades=$scratch/busy.csv
expect 0 "The grades are in $grades." ./book grade "$class" --csv "$grades"
is loop busy passed "So this says nothing about your code"
[[ $(wc -l <"$scratch/attempts") == 3 ]] || complain "a busy machine gets $(wc -l <"$scratch/attempts") attempts"

for at in / /tmp /dev /dev/shm /var/tmp "$here" "$class" "$scratch"; do
    [[ ! -e $at/was_here ]] || complain "a file is left in $at"
done
left=$(grep -lsazE '^/program$' /proc/[0-9]*/cmdline)
[[ -z $left ]] || complain "processes are left: $left"
finish
