#!/usr/bin/env bash
# ./book grade: a small class, of which each hand-in is named as it must be, and none is the end of the others'.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
if [[ ! -d $root/solutions ]]; then
    echo "SKIPPED: a book for students has no solutions to hand in"
    exit
fi
export PATH
PATH=$(machine_without nvidia-smi apt-get)
here="$scratch/a book"
little_book "$here"
cd "$here" || exit 1
little_exercise
class="$scratch/a \"class\", [of] 7"

expect_sentence 2 "grade takes the folder of a class, which has a folder for each student." ./book grade
expect_sentence 2 "There is no folder nowhere: grade takes the folder of a class." ./book grade nowhere
expect_sentence 2 "grade takes folders of classes, but not '--csv'." ./book grade --csv x
expect_sentence 2 "The book itself is in $scratch: grade takes the folder of a class." ./book grade "$scratch"
mkdir -p "$class/empty"
expect_sentence 2 "Nobody in $class has handed in anything: a file lies there as ann/09_all_reduce/halving_doubling.cu." \
    ./book grade "$class"

hand_in() { mkdir -p "$class/$1/01_line" && cat >"$class/$1/01_line/slope.cpp"; }  # STUDENT, and the file on stdin
answer() { sed "$2" solutions/01_line/slope.cpp | hand_in "$1"; }                  # the solution, changed
answer right ''

# Without bubblewrap, and where it may not make a sandbox, nothing of a student's is run.
bwrap=$(readlink -f "$(command -v bwrap)")
rm -f "$PATH/bwrap"
expect 1 "This machine lacks bubblewrap: install it by one of these lines" ./book grade "$class"
printf '#!/bin/sh\necho "bwrap: No permissions to create a new namespace" >&2\nexit 1\n' >"$PATH/bwrap"
chmod +x "$PATH/bwrap"
expect 1 "this machine forbids to make one (bwrap: No permissions to create a new namespace):" ./book grade "$class"
[[ ! -e $class/grades.csv ]] || complain "there are grades all the same"
rm "$PATH/bwrap"
if [[ -z $bwrap ]] || ! "$bwrap" --unshare-pid --ro-bind / / true; then
    echo "SKIPPED: no grading here: bubblewrap is missing, or may not make namespaces"
    finish
fi
ln -s "$bwrap" "$PATH/bwrap"

mkdir -p "$class/in_my/my/01_line" && sed '1i// mine' solutions/01_line/slope.cpp >"$class/in_my/my/01_line/slope.cpp"
answer '=half, "wrong"' 's/return -2 /return -3 /'
answer peeks "1i#include \"$here/solutions/01_line/slope.cpp\""
answer ends 's/return 2 \* run/return *reinterpret_cast<volatile int*>(8)/; s/return -2 /__builtin_exit(0); return -2 /'
# It leaves files where it may, stops what watches it, and talks too much.
hand_in vandal <<END
#include <csignal>
#include <cstdio>
#include <string>
#include <unistd.h>
#include "exercises/01_line/slope.hpp"
int rise(int) {
    for (const std::string at : {"/tmp", "/var/tmp", "$scratch", "$here", "$here/build/cpu", R"($class)"})
        if (std::FILE* file = std::fopen((at + "/was_here").c_str(), "w"))
            std::fclose(file);
    if (fork() == 0)
        for (;;)
            std::puts("passed");
    kill(getppid(), SIGSTOP);
    for (;;)
        sleep(1);
}
int fall(int run) { return -2 * run; }
END
mkdir -p "$class"/{link,pipe}/01_line
ln -s "$here/solutions/01_line/slope.cpp" "$class/link/01_line"
mkfifo "$class/pipe/01_line/slope.cpp"

sed -i 's/task_seconds=60 /task_seconds=2 /' tools/grade.sh
echo 'is_busy() { false; }' >>exercises/run_task.sh  # or the machine's other work would be in the verdicts
expect 0 "The grades are in $class/grades.csv." timeout 250 ./book grade "$class"
[[ $output == *'=half, "wrong"      01_line/slope                   1 of 2  passed, wrong'* ]] || complain "the table: $output"

# is STUDENT VERDICT_OF_UP VERDICT_OF_DOWN WORDS
is() {
    local rows
    rows=$(grep -F "\"$1\",\"01_line/slope\"," "$class/grades.csv")
    [[ $(wc -l <<<"$rows") == 2 && $rows == *'"up","'"$2"'","'*'"down","'"$3"'","'* && $rows == *"$4"* ]] ||
        complain "$1 should be $2, $3, with '$4': $rows"
}
is right passed passed '"passed","1","","same as in_my"'
is in_my passed passed '"same as right"'
is "'=half, \"\"wrong\"\"" passed wrong "You say -9, right is -6."
is empty missing missing "Not handed in."
is peeks compile compile "my/01_line/slope.cpp:1:10: fatal error: solutions/01_line/slope.cpp: No such file"
is ends crash 'exit' "it reads or writes where it may not"
is vandal hang passed ''
is link refused refused "Refused: slope.cpp is a symbolic link"
is pipe refused refused "Refused: this is no file that can be read."
for at in /tmp /var/tmp "$here" "$here/build/cpu" "$class" "$scratch"; do
    [[ ! -e $at/was_here ]] || complain "a file is left in $at"
done
left=$(grep -lsazE '^/program$' /proc/[0-9]*/cmdline)
[[ -z $left ]] || complain "processes are left: $left"

# The teacher's own answer, which is older, is not taken for a student's.
mkdir -p my/01_line && cp exercises/01_line/slope/stub.cpp my/01_line/slope.cpp && touch -d yesterday my/01_line/slope.cpp
expect 1 "Task up is not implemented yet." ./book check 01
finish
