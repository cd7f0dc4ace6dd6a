#!/usr/bin/env bash
# The kernels that run in the page: what is kept of them is what their sources give today.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
live=$root/tools/web/live
give_up() { echo "SKIPPED: building the page's kernels anew ($1)" && exit 77; }
built_with=19.1.7
clang++-19 --version 2>/dev/null | grep -qF "version $built_with" || give_up "no clang++-19 $built_with here: see tools/web/live/README.md"
echo 'int main() { return 0; }' >"$scratch/empty.cpp"
clang++-19 --target=wasm32-wasi -stdlib=libc++ "$scratch/empty.cpp" -o "$scratch/empty.wasm" &>/dev/null ||
    give_up "no libraries for WebAssembly here: see tools/web/live/README.md"

# Built in another folder than the one that is kept: nothing of its place may be in the file.
mkdir -p "$scratch/elsewhere/tools"
cp -r "$root"/{chapters,common} "$scratch/elsewhere" && cp -r "$root/tools/web" "$scratch/elsewhere/tools"
bash "$scratch/elsewhere/tools/web/live/build.sh" "$scratch/kernels.wasm" &>"$scratch/said" || complain "they do not compile: $(cat "$scratch/said")"
for kind in wasm json; do
    cmp "$scratch/kernels.$kind" "$live/kernels.$kind" ||
        complain "tools/web/live/kernels.$kind is not what its sources give, wherever the book stands: bash tools/web/live/build.sh"
done
finish
