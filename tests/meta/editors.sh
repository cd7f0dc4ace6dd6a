#!/usr/bin/env bash
# What editors are told: with the preset cpu-debug every source of chapters/ and common/ has a command of its own in
# compile_commands.json, no unity file is in it, and clangd finds no error in any: editors.sh [SOURCE...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
for program in clangd python3; do
    command -v "$program" >/dev/null || { echo "SKIPPED: what editors are told: no $program is here" && exit 77; }
done
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cmake --preset cpu-debug -B "$build" -DBUILD_TESTING=OFF >"$build/configure.log" || { cat "$build/configure.log" && exit 1; }
python3 - "$build/compile_commands.json" >"$build/sources" <<'END'
import json, os, sys
files = [entry["file"] for entry in json.load(open(sys.argv[1]))]
unity = [file for file in files if "Unity" in file]
assert not unity, f"an editor knows no file of this name: {unity[0]}"
here = os.getcwd() + "/"
print("\n".join(sorted({file.removeprefix(here) for file in files if file.startswith((here + "chapters/", here + "common/"))})))
END
missing=$(git ls-files 'chapters/*.cpp' 'chapters/*.cu' 'common/*.cpp' 'common/*.cu' | grep -vxF -f "$build/sources" || true)
[[ -z $missing ]] || { echo "FAILED: compile_commands.json has not: $missing" && exit 1; }
check() {  # clangd also tries its own features at each token of the lines that it is given: the source's errors are those of the whole file
    clangd --check="$1" --check-lines=1-1 --compile-commands-dir="$build" >"$build/said.$$" 2>&1 || true
    grep -E '^E\[[^]]*\] \[' "$build/said.$$" | sed "s|^|$1: |" >"$build/${1//\//_}.errors" || true
    grep -q 'All checks completed' "$build/said.$$" || echo "$1: clangd did not come to its end" >>"$build/${1//\//_}.errors"
}
export -f check && export build
if (($#)); then printf '%s\n' "$@" >"$build/sources"; fi
xargs -P "$(nproc)" -I{} bash -c 'check {}' <"$build/sources"
cat "$build"/*.errors
if cat "$build"/*.errors | grep -q .; then exit 1; fi
echo "clangd: no error in $(wc -l <"$build/sources") files"
