#!/usr/bin/env bash
# Runs a Python program by an interpreter that has PyTorch: tools/with_pytorch.sh [--or-without] PROGRAM [its arguments]
# It takes the first one of DDP_PYTORCH (separated by colons), of ./book setup pytorch, and of this machine. Where none has it, this
# says so and exits with 77, which ctest counts as skipped; --or-without takes any interpreter then.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
otherwise=
if [[ ${1-} == --or-without ]]; then otherwise=python3 && shift; fi
IFS=: read -ra pythons <<<"${DDP_PYTORCH:-}"
for python in "${pythons[@]}" "$root/build/pytorch/bin/python" python3 /usr/bin/python3; do
    if "$python" -c 'import importlib.util as u; exit(not u.find_spec("torch"))' 2>/dev/null; then
        exec "$python" -B "$@"
    fi
done
[[ ! $otherwise ]] || exec "$otherwise" -B "$@"
echo "SKIPPED: no PyTorch is here: \`./book setup pytorch\` fetches one into build/."
exit 77
