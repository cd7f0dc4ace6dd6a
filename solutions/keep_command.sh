#!/usr/bin/env bash
# keep_command.sh FILE command...: runs the command, and keeps it in FILE as a line that bash can run.
# This is how solutions/grade.sh knows how an answer is compiled and linked.
set -euo pipefail
file=$1
shift
"$@"
[[ $1 == /usr/* ]] || set -- "$(readlink -f "$(command -v "$1")")" "${@:2}"  # the compiler, not a link to it
printf 'cd %q && %s\n' "$PWD" "${*@Q}" >"$file"
