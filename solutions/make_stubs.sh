#!/usr/bin/env bash
# Makes exercises/NN_name/exercise/stub.cu (or .cpp), which students begin with, from solutions/NN_name/exercise.cu.
# With a folder as argument they are written there instead, as NN_name/exercise/stub.cu. In a solution
#     // stub: task        begins what the student writes for a task: the stub throws NotImplemented there
#     // stub              begins something that the stub has not (a kernel, a helper)
#     //: words            is a comment of the stub
#     // end stub          ends both
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
into=${1:-$root/exercises}

cd "$root/solutions"
for master in */*.cu */*.cpp; do
    [[ -f $master ]] || continue
    stub=$into/${master%.*}/stub.${master##*.}
    mkdir -p "${stub%/*}"
    awk '
        { indent = $0; sub(/[^ ].*/, "", indent) }
        /^ *\/\/ stub(: [a-z0-9_]+)?$/ { task = $3; hidden = 1; next }
        /^ *\/\/ end stub$/ {
            if (task != "")
                print indent "throw NotImplemented(\"" task "\");"
            hidden = 0
            next
        }
        /^ *\/\/:/ { sub(/\/\/:/, "//"); print; next }
        !hidden { print }
        END { if (hidden) exit 1 }
    ' "$master" >"$stub" || { echo "solutions/$master: a stub has no end." >&2 && exit 1; }
done
