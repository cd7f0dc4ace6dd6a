#!/usr/bin/env bash
# What a student does with ./book check, progress and reset: every kind of wrong answer to a little exercise on
# this very house, until it is solved; and what an instructor does with ./book handout.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
if [[ ! -d $root/solutions ]]; then
    echo "SKIPPED: a book for students cannot make its own stubs and handouts"
    exit
fi
export PATH
PATH=$(machine_without nvidia-smi)
here=$scratch/book
little_book "$here"
cd "$here" || exit 1
little_exercise
# The exercise's answer takes part in chapter 01's program.
echo "ddp_bring_along(line slope 01_line/slope/in_run.cpp)" >>exercises/CMakeLists.txt
echo 'int rise(int run); int of_three() { return rise(3); }' >exercises/01_line/slope/in_run.cpp
if command -v git >/dev/null; then
    git init -q && git add -A && git -c user.name=reader -c user.email=reader@localhost commit -qm book
else
    echo "SKIPPED: no git here to make a handout and to see that ./book check leaves no trace in the tree"
fi
mine=my/01_line/slope.cpp
answer() { sed "$1" solutions/01_line/slope.cpp >"$mine"; }

expect 0 "Next: ./book check 01 slope." ./book check
expect_sentence 2 "Chapter 02 has no exercises; these have: 01." ./book check 2
expect_sentence 2 "There is no chapter '7'; there are: 01 line, 02 slope." ./book check 7
takes="check takes a chapter, one of its exercises, --hint, --cpu and --gpu, but not"
expect_sentence 2 "$takes '--hnt'." ./book check 1 --hnt
expect_sentence 2 "$takes 'down'." ./book check 1 slope down
expect_sentence 2 "Chapter 01 has no exercise 'slop'; it has: slope." ./book check 1 slop
expect_sentence 2 "Chapter 01 has no exercise '2'; it has: slope." ./book check 1 2 --hint
expect_sentence 2 "progress takes no argument, or --import FILE: the answers of the web edition." ./book progress 1
expect_sentence 2 "reset takes one chapter; these have exercises: 01." ./book reset
expect_sentence 2 "There is nothing to reset: you have not begun chapter 01." ./book reset 01
expect_sentence 2 "handout takes the folder that it is to make." ./book handout
expect_sentence 2 "exercises is there already: name a folder that is not, and handout makes it." ./book handout exercises
[[ ! -e build && ! -e my ]] || complain "bad input has left something behind"
expect 0 "01       slope                 not begun  0 of 2   up" ./book progress
touch my  # as it is where the book is not in a folder of the reader's
expect_sentence 1 "The folder my/01_line cannot be written: copy the book to a folder that is yours." ./book check 01
rm my

# A fresh stub, and its hints, one by one.
expect 1 "This one is for you to edit: my/01_line/slope.cpp; what it is about is in exercises/01_line/README.md." ./book check line
[[ $output == *"
  next   up: how high a line rises
         Task up is not implemented yet.
         Two for every step.

             steps   1   2
             rise    2   4
  later  down: how deep it falls
  Stuck? ./book check 01 slope --hint" ]] || complain "a fresh stub is told like this: $output"
expect 0 $'Hint 1 of 3 for up, in my/01_line/slope.cpp:\n\n  Begin with one step.' ./book check 1 --hint
expect 0 "The second." ./book check --hint 01
expect 0 "The third." ./book check 01 --hint
expect 0 "There are three hints for up, and you have seen them all. This was the last:" ./book check 01 --hint
[[ $output == *"The third."* ]] || complain "the last hint is not said again: $output"
expect 0 "not begun" ./book progress

# Wrong answers.
answer 's/return 2 /return 3 /'
expect 0 "begun      0 of 2   up, edited since its last check" ./book progress
expect 1 $'  wrong  up: how high a line rises\n         You say 9, right is 6.' ./book check 1
answer 's/return 2 \* run/return 2 * ran/'
expect 1 "my/01_line/slope.cpp does not compile. The first error, in the words of the compiler:
    my/01_line/slope.cpp:4:16: error: " ./book check 1
answer 's/int fall/int fell/'
expect 1 "The first error, in the words of the compiler:
    undefined reference to " ./book check 1
[[ $output == *"fall(int)'"* ]] || complain "the linker's words: $output"
answer 's/return -2 /for (volatile int i = 0;; i = 1); return -2 /'
# make_busy ANSWER: lets the machine look busy from now on, or not, whatever it has to do.
make_busy() { sed -i '/^is_busy() { others=7/d' exercises/run_task.sh && echo "is_busy() { others=7; $1; }" >>exercises/run_task.sh; }
sed -i 's/^task_seconds=15 /task_seconds=1 /' exercises/run_task.sh
make_busy false
expect 1 "         Stopped after 1 s: a loop has no end, or far too much work, or this machine is busy." ./book check 1
[[ $output == *"  solved up: how high a line rises"*"  wrong  down"* ]] || complain "one of two: $output"
expect 0 "begun      1 of 2   down" ./book progress
expect 0 $'Hint 1 of 3 for down, in my/01_line/slope.cpp:\n\n  Turn it round.' ./book check 1 --hint

# On a busy machine the same is not judged, and what was recorded stays.
make_busy true
expect 1 $'  busy   down: how deep it falls\n         It took too long, and this machine is busy: other programs have at least 7 threads' ./book check 1
[[ $output == *"  Nothing is recorded. Try again: ./book check 01 slope" && $output != *Stuck* && $output != *wrong* ]] ||
    complain "a busy machine is told like this: $output"
expect 0 "begun      1 of 2   down" ./book progress
answer ''
expect 0 $'  All of it is solved.\nYou have solved the last exercise. ./book progress shows them all.' ./book check 1
answer 's/return -2 /for (volatile int i = 0;; i = 1); return -2 /'
expect 1 "  busy   down" ./book check 1
expect 0 "begun      2 of 2   edited since its last check" ./book progress
answer 's/return -2 /return -3 /'
expect 1 "  wrong  down" ./book check 1  # no time has struck

# Solved. Only then does the answer take part.
unsolved="--algorithm mine runs your my/01_line/slope.cpp, which is not solved yet: ./book check 01 says what is next."
expect_sentence 2 "$unsolved" ./book run 1 --algorithm mine
answer ''
expect 0 "  All of it is solved." ./book check 1
expect 0 "this is 01_line with 3 options, the last --quick" ./book run 1 --algorithm mine --quick
[[ -x build/cpu/bin/line_slope_mine ]] || complain "this was not the program with the answer"
expect 0 "done       2 of 2   -" ./book progress
expect 0 "There is nothing to hint at, because this is solved: slope." ./book check 1 --hint
git checkout -q exercises 2>/dev/null
[[ -z $(git status --porcelain 2>/dev/null) ]] || complain "the tree is dirty: $(git status --porcelain)"
answer 's/return 2 /return 4 /'
cmake --build build/cpu --target all >"$scratch/all" 2>&1
! grep "my/" "$scratch/all" || complain "the build for everybody has what is mine"

# Begun anew, twice: what was there is kept.
expect 0 "What you had is in my/backup/01_line.1." ./book reset 1
grep -q "return 4" my/backup/01_line.1/slope.cpp || complain "the backup is not what there was"
cmp -s exercises/01_line/slope/stub.cpp "$mine" || complain "the reset is not the stub"
expect 0 "not begun  0 of 2   up" ./book progress
expect 0 "What you had is in my/backup/01_line.2." ./book reset 01

if command -v git >/dev/null; then
    expect 0 "A book for students is in $scratch/class/book: it has the exercises" ./book handout "$scratch/class/book"
    cd "$scratch/class/book" || exit 1
    [[ ! -e solutions && ! -e my && ! -e tests/mistakes ]] || complain "the handout has too much: $(ls . exercises/*/*)"
    [[ -f exercises/01_line/slope/test.cpp ]] || complain "the handout lacks the tests"
    [[ -z $(git status --porcelain) ]] || complain "the handout is dirty: $(git status --porcelain)"
    expect 0 "not begun  0 of 2   up" ./book progress
    expect 0 "Kernels: this CPU" cmake --preset cpu
fi

# One exercise of two: only that one is begun, built, checked and hinted at.
cd "$here" || exit 1
echo "ddp_add_exercise(01_line tail)" >>exercises/CMakeLists.txt
sed 's/slope/tail/; s/rise/wag/; s/fall/droop/' exercises/01_line/slope.hpp >exercises/01_line/tail.hpp
mkdir exercises/01_line/tail
sed 's/slope/tail/; s/rise/wag/; s/fall/droop/' exercises/01_line/slope/stub.cpp >exercises/01_line/tail/stub.cpp
sed 's/slope/tail/; s/rise/wag/; s/fall/droop/; s/"up"/"wag"/; s/"down"/"droop"/' exercises/01_line/slope/test.cpp \
    >exercises/01_line/tail/test.cpp
# shellcheck disable=SC2016  # the backquotes are Markdown's
printf '%s\n' '# Exercise `tail`' '## Task `wag`: there and back' '<details><summary>Hint 1</summary>' 'Wag it.' '</details>' \
    >>exercises/01_line/README.md
expect_sentence 2 "Chapter 01 has no exercise 'head'; it has: slope, tail." ./book check 1 head
mv "$mine" "$scratch/mine"
expect 1 "This one is for you to edit: my/01_line/tail.cpp" ./book check 1 tail
[[ $output == *$'\nmy/01_line/tail.cpp\n  next   wag: there and back'*"Stuck? ./book check 01 tail --hint" ]] ||
    complain "the second exercise alone is checked like this: $output"
[[ $output != *slope* && ! -e $mine ]] || complain "a check of tail has to do with slope: $output"
expect 0 $'Hint 1 of 3 for wag, in my/01_line/tail.cpp:\n\n  Wag it.' ./book check 1 tail --hint
[[ ! -e $mine ]] || complain "a hint for tail has begun slope"
mv "$scratch/mine" "$mine"
expect 1 "Stuck? ./book check 01 slope --hint" ./book check 1 slope
[[ $output != *tail* ]] || complain "a check of slope has to do with tail: $output"
expect 1 "my/01_line/tail.cpp" ./book check 1
[[ $output == *my/01_line/slope.cpp* ]] || complain "a check of all exercises lacks the first: $output"
expect 0 "Hint 1 of 3 for up, in my/01_line/slope.cpp:" ./book check 1 --hint

# The second check has nothing to do but to run the tasks: it configures and compiles nothing.
lacks_work() {
    ! grep -qE 'Configuring done|Building|Linking' build/cpu/book.log || complain "work without a change: $(cat build/cpu/book.log)"
}
./book check 1 slope &>"$scratch/again"
! grep -q configuring "$scratch/again" || complain "configured again: $(cat "$scratch/again")"
lacks_work
answer 's/return 2 /return 5 /'
./book check 1 slope &>"$scratch/again"
[[ $(grep -cE '\.o$' build/cpu/book.log) == 1 ]] || complain "one edited file, and this is built: $(cat build/cpu/book.log)"

# What a program may do instead of an answer: a script plays it.
# shellcheck source=exercises/run_task.sh
. "$root/exercises/run_task.sh"
source=
judged() {  # judged VERDICT WORDS 'script'
    printf '#!/bin/bash\n%s\n' "$3" >"$scratch/program" && chmod +x "$scratch/program"
    run_task "$scratch/program" some_task "$source"
    [[ $verdict == "$1" && $words == "$2" ]] || complain "\`$3\` is $verdict: $words"
}
is_busy_now=$(declare -f is_busy)
# shellcheck disable=SC2317  # `judged` calls it
is_busy() { false; }
judged passed $'hello\npassed' 'echo hello; echo passed'
judged missing "none" 'echo none; exit 3'
judged wrong "no" 'echo no; exit 4'
judged wrong "thrown" 'echo thrown >&2; exit 5'
judged wrong "Your code has ended the program (status 0): it must return, or throw." 'exit 0'
judged wrong $'passed\nhello\nYour code has ended the program (status 0): it must return, or throw.' \
    'echo passed; echo hello'
judged wrong "Your code has ended the program (status 1): it must return, or throw." 'exit 1'
crash="Your code has crashed: it reads or writes where it may not (segmentation fault)."
may_be=" Is an index too large for its array, a __shared__ one perhaps? Or is a pointer or reference used"
judged wrong "$crash$may_be after what it refers to is gone?" 'kill -SEGV $$'
judged wrong $'cuda_on_cpu: here\n'"$crash" 'echo cuda_on_cpu: here; kill -SEGV $$'
freed="All else is right. But memory that you allocate must be freed: a Buffer or a Tensor does it itself."
judged wrong $'never freed: 4 bytes\n'"$freed" 'echo never freed: 4 bytes; echo passed; exit 1'
destroyed="All else is right. But what CUDA has made for you must be destroyed, on every way out of your functions."
judged wrong $'never destroyed: a graph\n'"$destroyed" 'echo never destroyed: a graph; echo passed; exit 1'
only_with_several="It is wrong only with several threads, or in some orders of them. Does each thread write elements"
only_with_several+=$' of its own, and is every element somebody\'s? Or is there a __syncthreads() missing?\nno'
for order in reversed random shape; do
    judged wrong "$only_with_several" \
        "[[ \$CUDA_ON_CPU != *$order* ]] && echo passed && exit; echo no; exit 4"
done
# shellcheck disable=SC2016  # the program expands it
judged wrong "$only_with_several" \
    '[[ $CUDA_ON_CPU == *order=reversed* ]] && echo passed && exit; echo no; exit 4'
judged wrong "no" 'echo no; exit 6'  # its cause is known
judged wrong "no" "[[ \$CUDA_ON_CPU != *random* ]] && echo passed && exit; echo no; exit 6"
# shellcheck disable=SC2016  # the program expands it
judged passed passed '[[ $CUDA_ON_CPU != *random:2* ]] && echo passed && exit; echo no; exit 4'
source=answer.cu  # has orders of its own
# shellcheck disable=SC2016
judged wrong "$only_with_several" '[[ $CUDA_ON_CPU != *random:2* ]] && echo passed && exit; echo no; exit 4'
# shellcheck disable=SC2016
judged passed passed '[[ $CUDA_ON_CPU == *races,*order=random:[12],* || $CUDA_ON_CPU == *order=@(forward|reversed,*|random:7,*) ]] && echo passed && exit; echo no; exit 4'
source=
# shellcheck disable=SC2016  # times are measured in the first order, and in no other
judged passed passed '[[ $DDP_MEASURES == yes ]] && first=yes || first=no; [[ $CUDA_ON_CPU == *order=forward ]] && forward=yes || forward=no
    [[ $first == "$forward" ]] && echo passed && exit; echo no; exit 4'

# Time-outs on a machine with more to do than it has cores, and on one without. In both it takes a second.
eval "$is_busy_now"
task_seconds=1 loaders=()
for ((i = 0; i <= $(nproc); i++)); do
    while :; do :; done &
    loaders+=($!)
done
is_judged_busy() {  # 'script'
    printf '#!/bin/bash\n%s\n' "$1" >"$scratch/program"
    run_task "$scratch/program" some_task
    [[ $verdict == busy && $words == "It took too long, and this machine is busy: other programs have at least "*"What was seen:"* ]] ||
        complain "\`$1\` is $verdict on a busy machine: $words"
}
is_judged_busy 'sleep 20'
is_judged_busy 'echo "rank 3: waited 4.0 s, or this machine is busy"; exit 5'
is_judged_busy 'echo "kernel k: still running after 10 s, so it was ended"; exit 5'
judged wrong no 'echo no; exit 5'
judged passed passed 'echo passed'
kill "${loaders[@]}" && wait "${loaders[@]}" 2>/dev/null
# shellcheck disable=SC2317  # `judged` calls it
is_busy() { false; }
judged wrong "Stopped after 1 s: a loop has no end, or far too much work, or this machine is busy." 'exec sleep 20'
finish
