#!/usr/bin/env bash
# ./book watch: it draws what a run has written, while the run writes, over its restart, until its end. watch_test.sh WATCH.PY
set -euo pipefail
watch=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
complain() { echo "FAILED: $*" && exit 1; }
log=$scratch/run.jsonl
step() {  # STEP LOSS
    printf '{"event":"step","step":%d,"steps":40,"epoch":1,"tokens":100,"loss":%s,"learning_rate":0.001,"tokens_per_second":1234.5}\n' "$@"
}

# A run that was killed in the middle of a line, and goes on from its checkpoint at step 10.
{
    echo '{"event":"start","name":"numerals","step":0}'
    step 10 8.0
    step 20 1.5
    printf '{"event":"st'
} >"$log"
picture=$(python3 "$watch" --once "$log")
[[ $picture == *"step 20 of 40  loss 1.500"* && $picture == *" 8.000 "* && $picture == *"1,234 tokens/s"* ]] ||
    complain "what is there is not drawn: $picture"
[[ $picture == *⠁*⡀* || $picture == *⠁*⢀* ]] || complain "a falling loss begins above and ends below: $picture"
[[ $picture != *"has ended"* ]] || complain "the run has not ended: $picture"

python3 "$watch" "$log" >"$scratch/seen" &
watcher=$!
{
    echo
    echo '{"event":"start","name":"numerals","step":10}'
    step 20 2.5
    step 40 0.5
    echo '{"event":"epoch","step":40,"epoch":1,"validation_loss":0.75}'
    echo 'no JSON'
    echo '{"event":"end"}'
} >>"$log"
wait "$watcher" || complain "the watcher did not end with the run"
seen=$(tail -n 14 "$scratch/seen")
[[ $seen == *"step 40 of 40  loss 0.500"* && $seen == *"validation  0.750"* && $seen == *"the run has ended"* ]] ||
    complain "the end is not drawn: $seen"
[[ $(python3 "$watch" --once "$log") == *"steps 10 to 40"* ]] || complain "the steps are others"
! python3 "$watch" --once "$scratch/none" 2>"$scratch/error" || complain "a file that is not there is drawn"
[[ $(<"$scratch/error") == *"none cannot be read: No such file or directory."* ]] || complain "no sentence: $(<"$scratch/error")"
# Ctrl-C ends it without a word, also while it starts: here that takes long.
mkdir "$scratch/slow" && echo 'import time; print("starts", flush=True); time.sleep(30)' >"$scratch/slow/json.py"
PYTHONPATH=$scratch/slow env --default-signal=INT python3 "$watch" "$log" >"$scratch/started" 2>"$scratch/said" &
watcher=$!
until [[ -s $scratch/started ]]; do sleep 0.05; done
kill -INT "$watcher"
! wait "$watcher" || complain "an interrupted watcher ended as if it had seen the end"
[[ ! -s $scratch/said ]] || complain "Ctrl-C: $(<"$scratch/said")"
echo "all as expected"
