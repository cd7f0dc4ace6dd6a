#!/usr/bin/env bash
# make_mutant.sh SOLUTION MUTANT RESULT: writes the solution with the mutant's mistake in it. A mutant says what
# the mistake is, which words tell the student of it ("says: ..."), and which lines of the solution are others:
# lines that begin with - are replaced by the lines with + that follow. They must stand there exactly once.
set -euo pipefail
awk '
    function replace() {
        at = index(text, old)
        if (old == "" || at == 0 || index(substr(text, at + 1), old) > 0) {
            print FILENAME ": these lines must stand in the solution exactly once:\n" old >"/dev/stderr"
            failed = 1
            exit 1
        }
        text = substr(text, 1, at - 1) new substr(text, at + length(old))
        old = new = ""
    }
    FNR == NR { text = text $0 "\n"; next }
    /^-/ { if (new != "") replace(); old = old substr($0, 2) "\n"; next }
    /^\+/ { new = new substr($0, 2) "\n"; next }
    END { if (!failed) { replace(); printf "%s", text } }
' "$1" "$2" >"$3"
