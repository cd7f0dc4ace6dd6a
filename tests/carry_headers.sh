#!/usr/bin/env bash
# Fills carry/ (git-ignored) with what tests/gpu_machine.sh needs from packages: the headers of CLI11, JSON
# for Modern C++ and Catch2 2, zlib, Catch2's compiled main, and Fashion-MNIST where it is installed. Run it where they are.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
carry=$root/carry

# where HEADER: the folder from which the compiler includes it.
where() {
    local path
    path=$(printf '#include <%s>\n' "$1" | "${CXX:-g++}" -std=c++20 -M -x c++ - 2>/dev/null |
        grep -om1 "[^ ]*/$1\b") || true
    if [[ -z $path ]]; then
        echo "The compiler does not find <$1>: install it (./book doctor names the package) and try again." >&2
        exit 1
    fi
    echo "${path%"/$1"}"
}

rm -rf "$carry"
mkdir -p "$carry"/{include/catch2,lib}
include=$(where CLI/CLI.hpp) && cp -r "$include/CLI" "$carry/include"
include=$(where nlohmann/json.hpp) && cp -r "$include/nlohmann" "$carry/include"
include=$(where catch2/catch.hpp) && cp "$include/catch2/catch.hpp" "$carry/include/catch2"
include=$(where zlib.h) && cp "$include/zlib.h" "$(where zconf.h)/zconf.h" "$carry/include"
for library in libz.a libCatch2WithMain.a; do cp "$("${CXX:-g++}" -print-file-name=$library)" "$carry/lib"; done
images=/usr/share/datasets/fashion-mnist
if [[ -d $images ]]; then
    mkdir "$carry/fashion-mnist"
    cp "$images"/*-ubyte* "$carry/fashion-mnist"
fi
mebibytes=$(du -sm "$carry" | cut -f1)
echo "carry/ holds $mebibytes MiB: $(cd "$carry" && echo include/* lib/* fashion-mnist*)"
if ((mebibytes >= 60)); then
    echo "carry/ must stay below 60 MiB to be carried." >&2
    exit 1
fi
