#!/usr/bin/env bash
# The explorer with a right answer, and with wrong ones: explored.sh FINDS RIGHT WRONG...
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/../meta/meta.sh"
expect 0 "mine" "$2" --algorithm mine
[[ $output == *none* && $output != *"none yet"* ]] || complain "the solution was not explored: $output"
for program in "${@:3}"; do
    expect 1 "$1" "$program" --algorithm mine
done
finish
