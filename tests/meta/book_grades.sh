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
class="$scratch/a class"

hand_in() { mkdir -p "$class/$1/01_line" && cat >"$class/$1/01_line/slope.cpp"; }  # STUDENT, and the file on stdin
answer() { sed "$2" solutions/01_line/slope.cpp | hand_in "$1"; }                  # the solution, changed
# right_but STUDENT: the solution, and in front of it what stands on stdin.
right_but() { { cat && cat solutions/01_line/slope.cpp; } | hand_in "$1"; }
# cheat STUDENT: wrong answers, and stdin is what rise() does, who is called first.
cheat() {
    hand_in "$1" <<END
#include "exercises/01_line/slope.hpp"
#include <cstdio>
#include <cstdlib>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>
namespace ddp::test { void held(); }
int fall(int) { return 0; }
int rise(int) {
$(cat)
    return 0;
}
END
}

expect_sentence 2 "grade takes the folder of a class, which has a folder for each student." ./book grade
expect_sentence 2 "There is no folder nowhere: grade takes the folder of a class." ./book grade nowhere
expect_sentence 2 "grade takes the folder of a class and --csv FILE, but not '--cvs'." ./book grade . --cvs x
mkdir -p "$class/empty"
expect_sentence 2 "Nobody in $class has handed in anything: a file lies there as ann/09_all_reduce/halving_doubling.cu." \
    ./book grade "$class"

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

# ---- Honest ones
mkdir -p "$class/in_my/my/01_line" && cp solutions/01_line/slope.cpp "$class/in_my/my/01_line"
hand_in 'stub, "first"' <exercises/01_line/slope.cpp
answer mutant 's/return 2 /return 3 /'
answer half 's/return -2 \* run/throw 42/'
answer typo 's/return 2 \* run/return 2 * ran/'
answer loop 's/return 2 /for (volatile int i = 0;; i = 1); return 2 /'
answer null 's/return -2 \* run/return *reinterpret_cast<volatile int*>(8)/'
answer abort 's/return -2 \* run/__builtin_abort()/'
# A buffer on the stack, and what lies above it.
answer overflow 's/return 2 \* run/volatile char a[8]; for (long i = 0; i < 1 << 24; i++) a[i] = 1; return a[run]/'

# ---- Those who end early, or say what the tests should say
answer exits 's/return 2 \* run/__builtin_exit(0)/'
cheat prints <<<'    std::puts("passed"); std::fflush(stdout); _exit(0);'
cheat formula <<<'    std::puts("=1+1,\"a\""); std::fflush(stdout); _exit(7);'
cheat every_pipe <<<'    for (int fd = 3; fd < 1000; fd++) dprintf(fd, "0123456789abcdef0123456789abcdef\n");'
cheat reads_pipe <<'END'
    char text[4096];
    for (const char* from : {"/proc/self/fd/3", "/proc/self/fd/4", "/proc/1/fd/3", "/proc/1/fd/4"}) {
        const int fd = open(from, O_RDONLY | O_NONBLOCK);
        const auto got = read(fd, text, sizeof text);
        if (got > 0 && write(4, text, got) < 0) return 1;
    }
    _exit(0);
END
cheat calls_held <<<'    ddp::test::held(); ddp::test::held(); _exit(0);'
right_but defines_main <<<'int main() { return 0; }'
right_but defines_tasks <<'END'
#include "tests/exercises/support/tasks.hpp"
END
right_but own_tasks <<<'namespace ddp::test { struct Task; void held() {} }'
right_but own_write <<<'extern "C" __attribute__((weak)) long write(int, const void*, unsigned long n) { return n; }'
right_but comes_first <<<'__attribute__((constructor(102))) static void begin() { __builtin_puts("passed"); }'
right_but resolver <<'END'
extern "C" { static int one() { return 1; } static int (*find())() { return one; } }
static int first() __attribute__((ifunc("find"), used));
END
{
    sed 's/return 2 /return 3 /' solutions/01_line/slope.cpp
    printf '#include <%s>\n' cstdio cstdlib
    echo 'static const int early = (std::puts("passed"), std::exit(0), 0);'
} | hand_in constructor
{
    sed 's/return -2 /return -3 /' solutions/01_line/slope.cpp
    echo 'struct Late { ~Late() { __builtin_puts("passed"); _exit(0); } } late;'
} | sed '1i#include <unistd.h>' | hand_in destructor

cheat kills <<<'    kill(-1, SIGKILL); std::raise(SIGKILL);'
cheat closes <<<'    for (int fd = 3; fd < 1000; fd++) close(fd);'

# ---- Those who want the machine, or the answers
cheat bombs <<<'    for (;;) fork();'
cheat memory <<<'    std::vector<void*> all; for (;;) all.push_back(::operator new(1 << 28));'
cheat disk <<END
    for (std::string at : {"/tmp", "/dev/shm", "/dev", "", "/var/tmp", "$here", "$class", "$scratch"}) {
        std::ofstream file(at + "/was_here");
        for (int i = 0; i < 200 && file; i++) file << std::string(1 << 20, 'x');
    }
END
cheat floods <<<'    const std::string much(1 << 20, 65); for (int i = 0; i < 100; i++) std::puts(much.c_str());'
right_but peeks <<<'#include "/etc/passwd"'
right_but copies <<<"#include \"$here/tests/exercises/01_line/slope_test.cpp\""
right_but huge <<<'char huge[1l << 34] = {1};'
mkdir -p "$class"/{link,pipe,long}/01_line
ln -s "$here/solutions/01_line/slope.cpp" "$class/link/01_line"
ln -s right "$class/linked_folder"
mkfifo "$class/pipe/01_line/slope.cpp"
head -c 300000 /dev/zero | tr '\0' ' ' >"$class/long/01_line/slope.cpp"

sed -i 's/^task_seconds=60 /task_seconds=4 /; s/^most_processes=256 /most_processes=40 /' solutions/grade.sh
expect 0 "The grades are in $scratch/grades.csv." ./book grade "$class" --csv "$scratch/grades.csv"
table=$output
[[ ! -e $class/grades.csv ]] || complain "--csv is not heeded"
(($(wc -L <<<"$table") <= 100)) || complain "the table is wider than 100 columns"
[[ $table == *"half                01_line/slope                   1 of 2  passed, wrong"* ]] || complain "the table: $table"

# is STUDENT VERDICT_OF_UP VERDICT_OF_DOWN WORDS
is() {
    local rows
    rows=$(grep -F "\"$1\",\"01_line/slope\"," "$scratch/grades.csv")
    [[ $(wc -l <<<"$rows") == 2 && $rows == *'"up","'"$2"'","'*'"down","'"$3"'","'* && $rows == *"$4"* ]] ||
        complain "$1 should be $2, $3, with '$4': $rows"
    [[ $(grep -c '"passed","1",""' <<<"$rows" || true) == "$(grep -cx passed <<<"$2"$'\n'"$3" || true)" ]] ||
        complain "the points of $1: $rows"
}
is right passed passed ''
is in_my passed passed ''
is empty missing missing "Not handed in."
is 'stub, ""first""' missing missing "Task up is not implemented yet."
is mutant wrong passed "You say 9, right is 6."
is half passed wrong "Your code has thrown something that is no std::exception."
is typo compile compile "Does not compile: 01_line/slope.cpp:4:16: error: "
is loop hang passed "Stopped after 4 s: a loop in your code does not end, or the machine is busy."
is null passed crash "it reads or writes where it may not"
is abort passed crash "something in it has called abort()"
is overflow crash passed "Your code has crashed"
is exits 'exit' passed "Your code has ended the program (status 0): it must return, or throw."
is prints 'exit' wrong "passed Your code has ended the program (status 0)"
is formula 'exit' wrong "\"'=1+1,\"\"a\"\" Your code has ended the program (status 7)"
is every_pipe forged wrong "Something else than the tests has written into the grader's pipe."
is reads_pipe 'exit' wrong "Your code has ended the program (status 0)"
for student in calls_held own_tasks; do is "$student" forged forged "Your file has \`ddp::test::held()\`"; done
is defines_main forged forged "Your file has \`main\`"
is defines_tasks compile compile "tasks.hpp: No such file or directory"
is own_write forged forged "Your file has \`write\`"
is comes_first forged forged "is to run before or after everything else (section .init_array."
is resolver forged forged "Your file has \`first()\`"
is constructor 'exit' 'exit' "passed Your code has ended the program (status 0)"
is destructor passed 'exit' "Your code has ended the program (status 0)"
is kills crash wrong "Your code was killed"
is closes wrong wrong "You say 0, right is 6."
is bombs hang wrong "Stopped after 4 s"
is memory wrong wrong "std::bad_alloc"
is disk wrong wrong "You say 0, right is 6."
is floods wrong wrong AAAA
for student in peeks copies; do is "$student" compile compile "No such file or directory"; done
is huge compile compile "Does not compile: "
is link refused refused "Refused: slope.cpp is a symbolic link"
is linked_folder refused refused "Refused: linked_folder is a symbolic link"
is pipe refused refused "Refused: this is no file that can be read."
is long refused refused "Refused: the file is longer than 256 KiB."
[[ $(sort "$scratch/grades.csv" | uniq -d | wc -l) == 0 ]] || complain "somebody is graded twice"

for at in / /tmp /dev /dev/shm /var/tmp "$here" "$class" "$scratch"; do
    [[ ! -e $at/was_here ]] || complain "a file is left in $at"
done
left=$(grep -lsazE '^/program$' /proc/[0-9]*/cmdline)
[[ -z $left ]] || complain "processes are left: $left"
finish
