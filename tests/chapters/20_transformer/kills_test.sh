#!/usr/bin/env bash
# The translation is killed again and again, at random moments: any of its processes, by kill -9. Started as often, it ends with
# the bits of a training that was left alone; with two ranks for the rest of the way it ends as well. kills_test.sh BIN [KILLS [SEED]]
set -euo pipefail
bin=$1 kills=${2:-10}
RANDOM=${3:-1}
scratch=$(mktemp -d)
program=$scratch/transformer  # of a name of its own, so that pgrep finds these processes and no others
cp "$bin/transformer" "$program"
trap 'rm -rf "$scratch"' EXIT
complain() { echo "FAILED: $*" && exit 1; }
training=(--train-only --sentences 2000 --epochs 4 --batch 20 --width 16 --heads 2 --layers 1 --every 7)
hash_of() { sed -n 's/.*hash \([0-9a-f]\{16\}\).*/\1/p' <<<"$1"; }

left_alone=$(hash_of "$("$program" --ranks 4 "${training[@]}")")
[[ -n $left_alone ]] || complain "the training that is left alone prints no hash"

start() { "$program" --processes "$1" "${training[@]}" --folder "$scratch/run" --csv "$scratch/run.csv"; }
gone() {  # waits until no process of ours is left
    for _ in {1..300}; do
        pgrep -f "^$program" >/dev/null || return 0
        sleep 0.1
    done
    complain "a process has outlived its job"
}
last_step() { sed -n 's/.*"step":\([0-9]*\),"steps".*/\1/p' "$scratch/run.jsonl" 2>/dev/null | tail -n 1; }

happened=0
for ((kill = 1; kill <= kills; kill++)); do
    until_step=$(($(last_step || true) + 10 + RANDOM % 30))
    start 4 >"$scratch/output" 2>&1 &
    job=$!
    while kill -0 "$job" 2>/dev/null && (($(last_step || true) + 0 < until_step)); do sleep 0.02; done
    mapfile -t processes < <(pgrep -f "^$program" || true)
    ((${#processes[@]} > 0)) || break  # it has come to its end
    kill -9 "${processes[RANDOM % ${#processes[@]}]}" 2>/dev/null && happened=$((happened + 1))
    wait "$job" 2>/dev/null || true
    gone
done
((happened >= 3)) || complain "only $happened kills came before the end: the test needs a longer training"
cp -r "$scratch/run" "$scratch/before"
resumed=$(hash_of "$(start 4)")
[[ $resumed == "$left_alone" ]] || complain "after $happened kills the hash is $resumed, and without $left_alone"
rm -r "$scratch/run"
mv "$scratch/before" "$scratch/run"
[[ -n $(hash_of "$(start 2)") ]] || complain "two ranks do not go on"
echo "after $happened kills: the same bits"
