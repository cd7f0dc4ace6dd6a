#!/usr/bin/env bash
# Builds, tests and measures the book on a machine with nvcc, CMake and a GPU that has no network and none
# of the packages: their headers come along in carry/ (filled by tests/carry_headers.sh elsewhere).
#     tests/gpu_machine.sh                 a CSV and a log for each bench under $OUT, or out/ if it is not set
#     tests/gpu_machine.sh --build-only    all that holds a kernel, not optimised and without a GPU, packages out of sight
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${OUT:-$root/out} cores=$(nproc)
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin

give_up() {
    echo "$*" >&2
    exit 1
}
kernels_besides=(bench_runtime chapter_all_reduce_bench test_{block_reduce,nccl_communicator,sharded_prefetch})  # not in all
rehearsal=false folder=$root/build/cuda targets=(all rest long)
case "$*" in
    "") ;;
    --build-only) rehearsal=true folder=$root/build/cuda-rehearsal targets=(all "${kernels_besides[@]}") ;;
    *) give_up "gpu_machine.sh takes nothing, or --build-only." ;;
esac
command -v nvcc >/dev/null || give_up "No nvcc here: install the CUDA Toolkit 12 or newer, or put nvcc on PATH."
$rehearsal || nvidia-smi -L 2>/dev/null || give_up "No GPU answers nvidia-smi: only --build-only makes sense here."
[[ -d $root/carry/include ]] || give_up "carry/ is empty: run tests/carry_headers.sh where the packages are, and carry it here."

# A carried header comes first for CMake and for the compiler. MPI is not what this machine is for.
options=(-DCMAKE_PREFIX_PATH="$root/carry" -DDDP_MPI=OFF)
export CPATH=$root/carry/include
if ninja=$(command -v ninja); then
    options+=(-G Ninja -DCMAKE_MAKE_PROGRAM="$ninja")
fi
if $rehearsal; then  # no further than PTX, since sass_check.sh assembles it, not optimised, and CMake looks into carry/ and nowhere else
    cuda_flags=-O0
    [[ $(nvcc --help) == *--Ofast-compile* ]] && cuda_flags="-O0 -Ofc=max"  # a third of the time
    options+=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_UNITY_BUILD_BATCH_SIZE=24
        -DCMAKE_CUDA_FLAGS_DEBUG="$cuda_flags" -DCMAKE_CUDA_ARCHITECTURES=90-virtual -DCMAKE_CUDA_COMPILER="$(command -v nvcc)"
        -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF)
    CXX=$(command -v "${CXX:-g++}") && export CXX
fi

configure_and_build() {
    (cd "$root" && cmake --preset cuda -B "$folder" "${options[@]}") &&
        cmake --build "$folder" --parallel "$cores" --target "${targets[@]}"
}
# The compiler looks into /usr/include all the same; what it took from a package that does not belong to
# the compiler itself would be missing on the other machine.
foreign_headers() {
    "$ninja" -C "$folder" -t deps | grep -oE '^ +/usr/include/.*' | sort -u |
        xargs -r dpkg -S 2>/dev/null | grep -vE '^(libc6-dev|linux-libc-dev|libstdc\+\+-|libcrypt-dev|libgcc-)'
}

configure_and_build || give_up "The CUDA build failed."
echo "built for CUDA in $SECONDS s: $(find "$folder/bin" -type f | wc -l) programs"
if $rehearsal; then
    echo "none of them run: this was a rehearsal without a GPU, and without optimising"
    if [[ -z $ninja ]] || ! command -v dpkg >/dev/null; then
        echo "not checked that every header was carried: that takes Ninja and dpkg"
    elif foreign_headers; then
        give_up "These headers are not carried: the build used this machine's packages."
    fi
    exit
fi

# Kernels of several processes run at the same time on one GPU only under NVIDIA's Multi-Process Service: the tests that start
# processes skip those parts without it. All other tests are better off without: MPS gives each process connections that others then
# lack, and a fault of one process ends the others.
start_mps() {
    command -v nvidia-cuda-mps-control >/dev/null || return
    CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d) && export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY
    trap 'rm -rf "$CUDA_MPS_PIPE_DIRECTORY"' EXIT
    nvidia-cuda-mps-control -d || return
    trap end_mps EXIT
}
end_mps() {
    echo quit | nvidia-cuda-mps-control
    rm -rf "$CUDA_MPS_PIPE_DIRECTORY"
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    trap - EXIT
}

failed=()
# Only one test at a time uses the GPU (RESOURCE_LOCK gpu): kernels of several that wait for each other would take its time in turns.
log=$folder/tests.log
# run_tests FILTER...: those tests that the filter of ctest takes.
run_tests() {
    ctest --test-dir "$folder" "$@" -LE '^(meta|weekly)$' --output-on-failure -j "$cores" | tee -a "$log"
    ((PIPESTATUS[0] == 0)) || failed+=("ctest${*:+ }$*")
}
run_benches() {
    local name program
    mkdir -p "$out"
    for name in $(find "$root/tests/bench" -name 'bench_*.c*' | sed 's|.*/||; s|\..*||' | sort); do
        program=$folder/bin/$name
        [[ -x $program ]] || continue  # it measures what only a CPU build has
        [[ $name != bench_nodes && $name != bench_tails ]] || continue  # ranks on several nodes; threads that play a GPU
        echo "== $name"
        timeout 300 "$program" --csv "$out/$name.csv" 2>&1 | tee "$out/$name.log" || failed+=("$name")
    done
}
rm -f "$log"
run_tests
if start_mps; then
    echo "MPS runs: processes share the GPU"
    run_tests -L '^processes$'
    end_mps
else
    echo "no MPS: tests of processes that share a GPU are skipped"
fi
run_benches

echo "== summary"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
nvcc --version | grep release
echo "tests: $(grep -cE ' Test +#[0-9]+: .* Passed ' "$log") passed, $(grep -c '\*\*\*Skipped' "$log") skipped," \
    "$(grep -cE ' Test +#[0-9]+: .*\*\*\*(Failed|Timeout|Exception)' "$log") failed"
sed -n 's/^SKIPPED: /skipped: /p' "$folder/Testing/Temporary/LastTest.log" | sort | uniq -c
echo "benches: $(find "$out" -name 'bench_*.csv' | wc -l) CSV files in $out"
((${#failed[@]} == 0)) || give_up "failed: ${failed[*]}"
