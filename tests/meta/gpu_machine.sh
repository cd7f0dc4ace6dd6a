#!/usr/bin/env bash
# tests/gpu_machine.sh on a machine that only looks as if it had a GPU: a cmake that takes the preset cpu for
# cuda stands in for it. What is tested is what the script does around the build.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
little_book "$scratch/book"
cd "$scratch/book" || exit 1
script=tests/gpu_machine.sh
cp "$root/$script" "$root/tests/carry_headers.sh" tests
export PATH OUT=$scratch/out CUDA_HOME=$scratch/no-cuda
real_cmake=$(command -v cmake)
PATH=$(machine_without nvcc nvidia-smi cmake)
stub() { printf '#!/bin/sh\n%s\n' "$2" >"$PATH/$1" && chmod +x "$PATH/$1"; }

expect_sentence 1 "gpu_machine.sh takes nothing, or --build-only." $script --fast
expect_sentence 1 "No nvcc here: install the CUDA Toolkit 12 or newer, or put nvcc on PATH." $script
stub nvcc "echo release 13.0"
expect_sentence 1 "No GPU answers nvidia-smi: only --build-only makes sense here." $script
stub nvidia-smi "echo 'GPU 0: Some GPU (UUID: GPU-1)'"
expect 1 "carry/ is empty: run tests/carry_headers.sh where the packages are, and carry it here." $script

if [[ -e /usr/include/catch2/catch.hpp ]]; then
    expect 0 "carry/ holds" tests/carry_headers.sh
    for file in include/{CLI/CLI.hpp,nlohmann/json.hpp,catch2/catch.hpp,zlib.h} lib/{libz.a,libCatch2WithMain.a}; do
        [[ -s carry/$file ]] || complain "carry/$file is not carried"
    done
else
    echo "SKIPPED: headers are carried from a Debian 12, with Catch2 2; this is none"
    mkdir -p carry/include
fi
stub cmake "if [ \"\$1\" = --preset ]; then shift 2; exec '$real_cmake' --preset cpu \"\$@\"; fi
exec '$real_cmake' \"\$@\""
echo 'int main(int, char** a) { return a[2][0] != 47; }' >tests/bench/02_slope/bench_slope.cpp  # --csv /...
expect 0 "tests: 2 passed, 1 skipped, 0 failed" $script
for text in "built for CUDA" "no MPS: tests" "== bench_slope" "1 skipped: no MPI" "CSV files in $OUT" "Some GPU"; do
    [[ $output == *"$text"* ]] || complain "the summary lacks '$text': $output"
done
stub nvidia-cuda-mps-control "[ \"\$1\" = -d ] || read -r word; echo \"\$1\$word in \$CUDA_MPS_PIPE_DIRECTORY\" >>'$scratch/mps'"
echo 'int main() { return 3; }' >tests/bench/02_slope/bench_slope.cpp
cat >>tests/CMakeLists.txt <<END
add_test(NAME breaks COMMAND false)
add_test(NAME jobs COMMAND sh -c [[echo jobs \${CUDA_MPS_PIPE_DIRECTORY:+under MPS} >>$scratch/ran]])
add_test(NAME no_jobs COMMAND sh -c [[echo no jobs \${CUDA_MPS_PIPE_DIRECTORY:+under MPS} >>$scratch/ran]])
set_tests_properties(jobs PROPERTIES LABELS "ranks;processes")
END
expect 1 "failed: ctest bench_slope" $script
[[ $(sort "$scratch/ran" | xargs -d '\n' printf '%s, ') == "jobs, jobs under MPS, no jobs, " ]] ||
    complain "not only tests of processes ran under MPS: $(cat "$scratch/ran")"
[[ $output == *"MPS runs"* && $(sed 's/ in .*//' "$scratch/mps" | xargs) == "-d quit" ]] ||
    complain "MPS was not started and ended: $output $(cat "$scratch/mps")"
[[ $output == *"tests: 5 passed, 1 skipped, 1 failed"* ]] || complain "failures are not counted: $output"
finish
