# Sourced by the test scripts of this folder.
# shellcheck shell=bash
set -uo pipefail

# shellcheck disable=SC2034  # the scripts read it
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
failures=0

skip() {
    echo "$*"
    exit 77
}
complain() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
}
finish() {  # the last command: the script ends with its status
    echo "$failures failed"
    ((failures == 0))
}
