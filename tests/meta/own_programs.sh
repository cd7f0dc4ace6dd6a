#!/usr/bin/env bash
# A program of a reader's (own_program/) that finds the installed book, under every launcher: one result in all.
# own_programs.sh BUILD: a build folder of the book with its libraries, CMAKE_BUILD_TYPE Release.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
build=$1
source=$root/tests/meta/own_program
awk -v OFS=, 'BEGIN { print "a,b,c,d,label"
    for (i = 0; i < 203; i++) print i % 7, i % 5 - 2, i * i % 11, i * 3 % 13 / 4, i % 2 }' >"$scratch/rows.csv"

same() {  # command...: the program must end as the first one did
    output=$("$@" --data "$scratch/rows.csv" 2>&1) || complain "\`$*\` failed: $output"
    : "${first:=$output}"
    [[ $output == "$first" && $output == *"epoch 4"* ]] || complain "\`$*\` said $output, and not $first"
}
builds() {  # WAY command...
    "${@:2}" >"$scratch/log" 2>&1 || { complain "$1: $(grep -iE -m 5 'error|FAILED' "$scratch/log")" && finish; }
}

# 0. As a folder of the reader's project. Compiled without optimisation: it shows that all is there, and its bits are others.
if [[ $* == *add_subdirectory* ]]; then
    mkdir "$scratch/mine"
    cp "$source"/*.c* "$source"/*.hpp "$scratch/mine" 2>/dev/null || true
    ln -s "$root" "$scratch/mine/book"
    sed 's/find_package(ddp_by_hand REQUIRED)/add_subdirectory(book EXCLUDE_FROM_ALL)/' "$source/CMakeLists.txt" >"$scratch/mine/CMakeLists.txt"
    builds add_subdirectory cmake -S "$scratch/mine" -B "$scratch/folder" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0
    builds "program of add_subdirectory" cmake --build "$scratch/folder" --parallel "$(nproc)"
    same "$scratch/folder/autoencoder" --ranks 3
    same "$scratch/folder/autoencoder" --processes 3
    compgen -G "$scratch/folder/book/exercises/*" >/dev/null && complain "add_subdirectory configures the exercises, too"
    finish
fi

# 1. Found, where it was installed. The book's own folder is not looked at.
builds install cmake --install "$build" --prefix "$scratch/ddp"
builds find_package cmake -S "$source" -B "$scratch/found" -DCMAKE_PREFIX_PATH="$scratch/ddp" -DCMAKE_BUILD_TYPE=Release
builds "program of find_package" cmake --build "$scratch/found"
if grep -r -qF "$root/" "$scratch/ddp/lib/cmake"; then complain "what is installed names the book's folder"; fi
program=$scratch/found/autoencoder
same "$program" --ranks 3
same "$program" --processes 3
if command -v mpirun >/dev/null; then
    same mpirun --allow-run-as-root --oversubscribe -n 3 "$program"
else
    echo "SKIPPED: no mpirun is here to start a program of one's own"
fi
torchrun=$root/build/pytorch/bin/torchrun
if [[ -x $torchrun ]]; then
    same env OMP_NUM_THREADS=1 "$torchrun" --no-python --nproc-per-node 3 "$program"
else
    echo "SKIPPED: no torchrun is here to start a program of one's own"
fi

finish
