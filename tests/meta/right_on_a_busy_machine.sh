#!/usr/bin/env bash
# No right answer is accused on a machine that has too much to do: beside sixteen programs that never rest, each task of each solution
# is solved, or nobody knows.
#     right_on_a_busy_machine.sh BIN [EXERCISE...]      BIN is the folder of the programs
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
# shellcheck source=exercises/run_task.sh
. "$root/exercises/run_task.sh"
bin=$(cd "$1" && pwd)
shift
exercises=("$@")
(($# > 0)) || mapfile -t exercises < <(find "$bin" -name 'exercise_*_solution' | sed 's/.*exercise_//; s/_solution$//' | sort)
((${#exercises[@]} > 0)) || complain "no solution is built"

restless=()
for _ in {1..16}; do
    (while :; do :; done) &
    restless+=($!)
done
trap 'kill "${restless[@]}"; rm -rf "$scratch"' EXIT

declare -A tasks_that_are=([passed]=0 [busy]=0)
for exercise in "${exercises[@]}"; do
    source=$(echo "$root"/solutions/*/"$exercise".c*)  # .cu or .cpp
    program=$bin/exercise_${exercise}_solution
    tasks=$("$program" --list) || complain "$program does not list its tasks"
    for task in $tasks; do
        run_task "$program" "$task" "$source"
        [[ $verdict == passed || $verdict == busy ]] || complain "$exercise: the right answer to $task is $verdict (load $(cut -d" " -f1 /proc/loadavg)): $words"
        tasks_that_are[$verdict]=$((${tasks_that_are[$verdict]:-0} + 1))
    done
done
echo "passed: ${tasks_that_are[passed]}, busy: ${tasks_that_are[busy]}"
((tasks_that_are[passed] > tasks_that_are[busy])) || complain "most tasks were not judged"
finish
