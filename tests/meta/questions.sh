#!/usr/bin/env bash
# tests/gpu/questions.sh without a GPU.
#     questions.sh BUILD     a build that is ready: each question's program and options must be there
# Then it asks programs that are scripts of a line: one stands still, one fails, one ends well.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
build=$(cd "$1" && pwd)
cmake --build "$build" --target help | sed -E 's/^\.\.\. //; s/[: ].*//' | sort -u >"$scratch/targets"
mkdir -p "$scratch/book/tests/gpu" "$scratch/bin"
cd "$scratch/book" || exit 1
cp "$root/tests/gpu/questions.sh" tests/gpu
export OUT=out QUESTIONS_BIN=$scratch/bin

# ---- The questions

# Each program writes down how it was called.
while read -r program; do
    grep -qxF "$program" "$scratch/targets" || complain "there is no target $program"
    printf '#!/bin/sh\necho %s "$@" >>%q\n' "$program" "$scratch/calls" >"$scratch/bin/$program"
    chmod +x "$scratch/bin/$program"
done < <(tests/gpu/questions.sh --programs)
PATH=$(machine_without python3 compute-sanitizer ncu nvidia-cuda-mps-control) expect 0 "-- sharded_2: exit 0" tests/gpu/questions.sh
while read -r program words; do
    [[ $program != test_* && $program != gpu_probe && -x $build/bin/$program ]] || continue
    "$build/bin/$program" --help >"$scratch/help"
    for option in $words; do
        [[ $option != --* ]] || grep -qE "^ +$option\b" "$scratch/help" || complain "$program has no option $option"
    done
done <"$scratch/calls"
(($(wc -l <"$scratch/calls") > 20)) || complain "it has asked too little: $(cat "$scratch/calls")"
rm -r out

# ---- How it asks

printf '#!/bin/sh\nexec sleep 60\n' >"$scratch/bin/gpu_probe"
sed -i -E 's/program (probe_[a-z]+) [0-9]+/program \1 3/' tests/gpu/questions.sh
expect 0 "-- probe_queue: exit 137 after" tests/gpu/questions.sh probe
grep -q "process .*sleep 60" out/answers/probe_queue.stacks.txt || complain "who stands still leaves no stacks: $(ls out/answers)"
printf '#!/bin/sh\necho "error: it fails"\nexit 3\n' >"$scratch/bin/gpu_probe"
expect 0 "error: it fails" tests/gpu/questions.sh probe
[[ $(tar -tJf out/answers.tar.xz) == *answers/probe_polling.txt* ]] || complain "the answers are not packed"
QUESTIONS_SECONDS=2 expect 0 "-- probe_queue: not asked" tests/gpu/questions.sh probe

finish
