#!/usr/bin/env bash
# A chapter's program or bench in which an answer takes part: it has a row of its own, "mine", wherever the
# others have one, and its results are right. brought_along.sh PROGRAM OPTION...
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/../meta/meta.sh"
expect 0 "mine" "$@" --quick --ranks 3 --csv "$scratch/rows.csv"
rows_of() { cut -d, -f1,2 "$scratch/rows.csv" | tr ',' '\n' | grep -cx "$1"; }
others=$(rows_of 'two-shot\|tree')
((others > 0 && $(rows_of mine) == others)) ||
    complain "mine is not measured as often as the others: $(cat "$scratch/rows.csv")"
if head -n 1 "$scratch/rows.csv" | grep -q ',wrong$'; then
    ! grep '^mine,' "$scratch/rows.csv" | grep -v ',0$' || complain "it is wrong: $output"
fi
finish
