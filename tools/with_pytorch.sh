#!/usr/bin/env bash
# Runs a Python program by an interpreter that has PyTorch: tools/with_pytorch.sh [--or-without] PROGRAM [its arguments]
# It takes the first one of DDP_PYTORCH (separated by colons), of ./book setup pytorch, and of this machine that has 2.0 or newer. Where
# none has it, this says so and exits with 77, which ctest counts as skipped; --or-without takes any interpreter then, and DDP_LACK says so to the program.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
otherwise='' old=''
if [[ ${1-} == --or-without ]]; then otherwise=python3 && shift; fi
# Its version, without importing it. The reader's folder, which Python would search first, is no place for modules.
question='import sys
sys.path[:] = filter(None, sys.path)
import importlib.util, pathlib, re
spec = importlib.util.find_spec("torch") or exit(1)
print(*re.findall("^__version__.*= .(.*).$", pathlib.Path(spec.origin).with_name("version.py").read_text(), re.M))'
IFS=: read -ra pythons <<<"${DDP_PYTORCH:-}"
for python in "${pythons[@]}" "$root/build/pytorch/bin/python" python3 /usr/bin/python3; do
    version=$("$python" -c "$question" 2>/dev/null) || continue
    [[ $version == [01].* ]] || exec "$python" -B "$@"
    old=$version
done
lack="no PyTorch is here"
[[ ! $old ]] || lack="the PyTorch that is here, $old, is older than 2.0"
[[ ! $otherwise ]] || DDP_LACK=$lack exec "$otherwise" -B "$@"
echo "SKIPPED: $lack: \`./book setup pytorch\` fetches one into build/."
exit 77
