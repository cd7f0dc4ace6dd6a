#!/usr/bin/env bash
# An exercise and its answers: the stub is not implemented, the solution is right, and each mutant fails with
# the words that it says it will, or is right all the same (says: passed). answers.sh FOLDER_OF_PROGRAMS EXERCISE MISTAKE...
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/../meta/meta.sh"
# shellcheck source=exercises/run_task.sh
. "$root/exercises/run_task.sh"
usual_seconds=60  # the machine may be busy with other tests, and nothing is left unjudged:
is_busy() { false; }
task_seconds=$usual_seconds
programs=$1 exercise=$2
shift 2
program() { echo "$programs/exercise_${exercise}_$1"; }
source=$(echo "$root"/solutions/*/"$exercise".c*)  # .cu or .cpp
mistakes=$(echo "$root"/tests/mistakes/*/"$exercise.diff")

mapfile -t tasks < <("$(program stub)" --list)
in_readme=$(cat "$root"/exercises/*/README.md |
    sed -n "/^# Exercise \`$exercise\`/,/^# Exercise \`/{ s/^## Task \`\([a-z0-9_]*\)\`: ..*/\1/p; }")
[[ -n ${tasks[*]} && ${tasks[*]} == "$(xargs <<<"$in_readme")" ]] ||
    complain "the test has the tasks ${tasks[*]}, the README has $in_readme"
for task in "${tasks[@]}"; do
    run_task "$(program stub)" "$task"
    [[ $verdict == missing ]] || complain "the stub's $task is $verdict: $words"
    [[ $words == "Task "*" is not implemented yet." ]] || complain "the stub says of $task: $words"
    for _ in 1 2 3; do  # again, if it may have failed because the machine is busy
        run_task "$(program solution)" "$task" "$source"
        if [[ $verdict == passed ]] || ! took_too_long; then break; fi
    done
    [[ $verdict == passed ]] || complain "the solution's $task is $verdict: $words"
done
expect 2 "There is no task 'nothing'" "$(program solution)" nothing

# first_mistake PROGRAM: the words of the first task that is not solved; nearly all are told in the first order.
first_mistake() {
    local all=("${orders[@]}") its_source=
    for orders in "${all[0]}" "${all[*]}"; do
        read -ra orders <<<"$orders"
        [[ ${#orders[@]} == 1 ]] || its_source=$source
        for task in "${tasks[@]}"; do
            run_task "$1" "$task" "$its_source"
            [[ $verdict == passed ]] || break 2
        done
    done
    orders=("${all[@]}")
}
# Several lines `says:` of a mistake are as many ways in which it may end: one that uses what is gone, for example.
is_said() { [[ -n $(while read -r line; do [[ $words != *"$line"* ]] || echo yes; done <<<"$1") ]]; }  # LINES
is_as_expected() { [[ $verdict == "$judged" ]] && is_said "$expected"; }
said_of() { sed -n "/^@@ $1 @@\$/,/^@@ /s|^$2: ||p" "$mistakes"; }  # MISTAKE WHAT
for mistake in "$@"; do
    expected=$(said_of "$mistake" says)
    [[ -n $expected ]] || complain "the mistake $mistake does not name its words: says: ..."
    kernel_seconds=$(said_of "$mistake" kernel_seconds)  # for one whose kernel does not end
    kernel_seconds=${kernel_seconds:-10}
    task_seconds=$(said_of "$mistake" task_seconds)  # for one whose host code does not end
    task_seconds=${task_seconds:-$usual_seconds}
    judged=wrong
    [[ $expected != passed ]] || judged=passed
    for _ in 1 2 3; do
        first_mistake "$(program "$mistake")"
        if is_as_expected || ! took_too_long; then break; fi
    done
    [[ $verdict == "$judged" ]] || complain "the mutant $mistake is $verdict: $words"
    is_said "$expected" || complain "the mutant $mistake did not say '$expected' but: $words"
done
finish
