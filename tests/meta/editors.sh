#!/usr/bin/env bash
# What editors are told: with the preset cpu-debug every source of chapters/ and common/ has a command of its own in
# compile_commands.json, no unity file is in it, and clangd finds no error in any: editors.sh [SOURCE...]
# 23's backend is a project of its own, which asks PyTorch for its headers: it is read where ./book setup pytorch has been.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
for program in clangd python3; do
    command -v "$program" >/dev/null || { echo "SKIPPED: what editors are told: no $program is here" && exit 77; }
done
backend=chapters/23_your_job/backend
python=$PWD/build/pytorch/bin/python
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

configure() {  # NAME CMAKE'S_ARGUMENTS...: writes the commands into $build/NAME
    local name=$1 && shift
    cmake -B "$build/$name" "$@" >"$build/$name.log" || { cat "$build/$name.log" && exit 1; }
}
sources_of() {  # NAME FOLDER...: the sources of these folders that $build/NAME has commands for, and no unity file
    python3 - "$build/$1/compile_commands.json" "${@:2}" <<'END_OF_PROGRAM'
import json, os, sys
files = [os.path.normpath(entry["file"]) for entry in json.load(open(sys.argv[1]))]
unity = [file for file in files if "Unity" in file and "/backend/book/" not in file]  # the book is only what the backend links
assert not unity, f"an editor knows no file of this name: {unity[0]}"
relative = {os.path.relpath(file) for file in files}
print("\n".join(sorted(file for file in relative if file.startswith(tuple(folder + "/" for folder in sys.argv[2:])))))
END_OF_PROGRAM
}
configure book --preset cpu-debug -DBUILD_TESTING=OFF
sources_of book chapters common | sed "s|^|book |" >"$build/sources"
if [[ -x $python ]]; then
    configure backend -S "$backend" -DDDP_PYTHON="$python" -DDDP_ANSWER="$PWD/solutions/09_all_reduce/halving_doubling.cu" \
        -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DDDP_UNITY=OFF
    sources_of backend "$backend" | sed "s|^|backend |" >>"$build/sources"
fi
missing=$(git ls-files 'chapters/*.cpp' 'chapters/*.cu' 'common/*.cpp' 'common/*.cu' | grep -vxF -f <(cut -d' ' -f2 "$build/sources") || true)
[[ -x $python ]] || missing=$(grep -v "^$backend/" <<<"$missing" || true)
[[ -z $missing ]] || { echo "FAILED: compile_commands.json has not: $missing" && exit 1; }

check() {  # PROJECT SOURCE
    local source=$2 said=$build/said.$$
    # clangd also tries its own features at each token of the lines that it is given: the source's errors are those of the whole file
    clangd --check="$source" --check-lines=1-1 --compile-commands-dir="$build/$1" >"$said" 2>&1 || true
    grep -E '^E\[[^]]*\] \[' "$said" | sed "s|^|$source: |" >"$build/${source//\//_}.errors" || true
    grep -q 'All checks completed' "$said" || echo "$source: clangd did not come to its end" >>"$build/${source//\//_}.errors"
}
export -f check && export build
if (($#)); then
    printf ' %s\n' "$@" | grep -F -f - "$build/sources" >"$build/asked" && mv "$build/asked" "$build/sources"
fi
xargs -P "$(nproc)" -I{} bash -c 'check {}' <"$build/sources"
errors=$(cat "$build"/*.errors)
[[ -z $errors ]] || { echo "$errors" && exit 1; }
echo "clangd: no error in $(wc -l <"$build/sources") files"
