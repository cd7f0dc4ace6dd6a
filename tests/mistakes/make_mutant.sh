#!/usr/bin/env bash
# make_mutant.sh SOLUTION MISTAKES NAME RESULT: writes the solution with one mistake in it. MISTAKES has a section for each,
# headed "@@ name @@". It says what the mistake is, which words tell the student of it ("says: ..."), and which lines of the
# solution are others: lines that begin with - are replaced by the lines with + that follow. They must stand there exactly once.
set -euo pipefail
awk -v name="$3" '
    function fail(why) {
        print FILENAME ": " why >"/dev/stderr"
        failed = 1
        exit 1
    }
    function replace() {
        at = index(text, old)
        if (old == "" || at == 0 || index(substr(text, at + 1), old) > 0)
            fail(name ": these lines must stand in the solution exactly once:\n" old)
        text = substr(text, 1, at - 1) new substr(text, at + length(old))
        old = new = ""
    }
    FNR == NR { text = text $0 "\n"; next }
    /^@@ / { here = $2 == name; next }
    here && /^-/ { if (new != "") replace(); old = old substr($0, 2) "\n" }
    here && /^\+/ { new = new substr($0, 2) "\n" }
    END { if (!failed) { replace(); printf "%s", text } }
' "$1" "$2" >"$4.new"
# As it was: then nothing has to be compiled again.
if cmp -s "$4.new" "$4"; then rm "$4.new"; else mv "$4.new" "$4"; fi
