#!/usr/bin/env bash
# What ./book says: help, for the first minutes on one screen and then of all verbs, and one sentence with exit code 2 for whatever it does not understand.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
little_book "$scratch/book"
book=$scratch/book/book

for call in "" help -h --help; do
    # shellcheck disable=SC2086  # no argument at all is one of the cases
    expect 0 "chapters: 01 line, 02 slope" "$book" $call
    verbs=$(sed -n 's/^  \.\/book \([a-z]*\).*/\1/p' <<<"$output" | xargs)
    [[ $verbs == "run check test bench plot doctor help" ]] || complain "the first verbs are not these: $verbs"
    (($(wc -l <<<"$output") <= 24)) || complain "help does not fit on a screen: $output"
    for verb in progress reset handout grade explore watch web cluster diff data setup read predict under; do
        [[ $output == *" $verb"* ]] || complain "help does not name $verb"
    done
done
expect 0 "benches: slope" "$book" help all
for verb in run check progress reset handout grade test bench explore plot watch web cluster diff data setup read predict under doctor; do
    [[ $output == *"./book $verb"* ]] || complain "help all says nothing about $verb"
done
expect_sentence 2 "help takes nothing, or all." "$book" help run

# By another shell it starts itself anew. In a folder that has been deleted nothing works: CMake, for one, does not start.
expect 0 "chapters: 01 line, 02 slope" sh "$book"
expect 0 "chapters: 01 line, 02 slope" bash --posix "$book"
# shellcheck disable=SC2016  # the other shell expands it
expect 1 "The current folder has been deleted: cd to one that is there, and call ./book again." \
    bash -c 'mkdir "$1/gone" && cd "$1/gone" && rmdir "$1/gone" && "$1/book/book" run 1' bash "$scratch"

verbs="./book knows run, new, check, progress, reset, handout, grade, test, bench, explore, plot, watch, web, cluster, diff, data, setup, read, predict, under, doctor and help."
expect_sentence 2 "There is no verb 'fly'; $verbs" "$book" fly

chapters="there are: 01 line, 02 slope."
expect_sentence 2 "There is no chapter '3'; $chapters" "$book" run 3
expect_sentence 2 "There is no chapter 'slop'; $chapters" "$book" test slop
expect_sentence 2 "There is no chapter '12'; $chapters" "$book" plot 12
expect_sentence 2 "plot takes at most one chapter; $chapters" "$book" plot 01 02
expect_sentence 2 "watch takes at most one file, which a run writes: out/run.jsonl." "$book" watch a b
expect_sentence 2 "web does not take '--fast'; it takes --open, --pdf and --public." "$book" web --fast
expect_sentence 2 "cluster takes up, which makes nodes on this machine, and where, measure and scale, which look at nodes: \`./book help all\` says more." "$book" cluster down
expect_sentence 2 "diff takes one chapter, and another to compare it with; $chapters" "$book" diff
expect_sentence 2 "There is no chapter '99'; $chapters" "$book" diff 02 99
for chapter in 1 01 line 01_line; do
    expect_sentence 2 "Chapter 01 grows from no other: there is nothing to compare." "$book" diff "$chapter"
done
expect_sentence 2 "There is a chapter 'line': choose another name." "$book" new line
expect_sentence 2 "bench needs a name; there are: slope." "$book" bench
expect_sentence 2 "bench needs a name; there are: slope." "$book" bench --csv file
expect_sentence 2 "There is no bench 'slop'; there are: slope." "$book" bench slop
expect_sentence 2 "There is no bench '01'; there are: slope." "$book" bench 01
echo >"$scratch/book/tests/bench/02_slope/bench_tails.cpp"
expect_sentence 2 "Chapter '02' has several benches: slope, tails." "$book" bench 02
rm "$scratch/book/tests/bench/02_slope/bench_tails.cpp"
rm "$scratch"/book/tools/explore/explore_*.cpp
echo 'int main() {}' >"$scratch/book/tools/explore/explore_slope.cpp"
expect_sentence 2 "explore needs a name; there are: slope." "$book" explore
expect_sentence 2 "There is nothing to explore called 'line'; there are: slope." "$book" explore line
expect_sentence 2 "CUDA_ON_CPU=races is about kernels on a CPU: call it without --gpu" env CUDA_ON_CPU=strict,races "$book" run 1 --gpu
expect_sentence 2 "The explorer plays the GPU itself: call it without --gpu." "$book" explore slope --gpu
expect_sentence 2 "'--algorithm mine' is for: ./book run 07, ./book run 15, ./book bench all_reduce and ./book explore all_reduce." \
    "$book" explore slope --algorithm mine
expect_sentence 2 "test does not take '-all'; it takes a chapter, --all, --cpu and --gpu." "$book" test -all
expect_sentence 2 "data takes the name of what to fetch; there is: translations." "$book" data sets
expect_sentence 2 "setup takes what is to be set up; there are: pytorch, mpis, web." "$book" setup torch
expect_sentence 2 "read takes the flight-recorder dumps of all ranks, or their profiler's traces: one file each." "$book" read
expect_sentence 2 "under takes what the book is to be put under; there is: torch." "$book" under jax
expect_sentence 2 "--ranks takes the number of ranks, such as --ranks 2." "$book" under torch --ranks two
expect_sentence 2 "--algorithm takes mine: your answer to chapter 09's halving_doubling." "$book" under torch --algorithm ring
expect_sentence 2 "The script 'none.py' cannot be read." "$book" under torch none.py --ranks 2
expect_sentence 2 "doctor takes no argument." "$book" doctor 01

echo "# nothing" >"$scratch/book/chapters/CMakeLists.txt"
expect_sentence 2 "There is no chapter to run: chapters/CMakeLists.txt lists none." "$book" run
expect_sentence 2 "There is no chapter '1'; there are: none." "$book" run 1
[[ ! -e $scratch/book/build ]] || complain "bad input was noticed only after something was built"
finish
