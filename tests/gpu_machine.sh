#!/usr/bin/env bash
# Builds, tests and measures the book on a machine with nvcc, CMake and a GPU that has no network and none
# of the packages: their headers come along in carry/ (filled by tests/carry_headers.sh elsewhere).
#     tests/gpu_machine.sh                 a CSV and a log for each bench under $OUT, or out/ if it is not set
#     tests/gpu_machine.sh --build         one phase of it, at most nine minutes: where commands may not take longer,
#     tests/gpu_machine.sh --tests         call each again until it says that its phase is over. What has passed, or
#     tests/gpu_machine.sh --processes     is measured, is not done again
#     tests/gpu_machine.sh --benches
#     tests/gpu_machine.sh --build TARGET...   these only
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
rehearsal=false folder=$root/build/cuda targets=(all rest long) phases=(build tests processes benches) limit=infinity
case "$*" in
    "") ;;
    "--build "*) phases=(build) limit=${GPU_MACHINE_SECONDS:-540} targets=("${@:2}") ;;
    --build | --tests | --processes | --benches) phases=("${1#--}") limit=${GPU_MACHINE_SECONDS:-540} ;;
    --build-only) rehearsal=true folder=$root/build/cuda-rehearsal targets=(all "${kernels_besides[@]}") phases=(build) ;;
    *) give_up "gpu_machine.sh takes nothing, --build (with or without targets), --tests, --processes, --benches or --build-only." ;;
esac
[[ " ${phases[*]} " == *" build "* || -f $folder/CTestTestfile.cmake ]] ||
    give_up "Nothing is built here: call gpu_machine.sh --build first."
command -v nvcc >/dev/null || give_up "No nvcc here: install the CUDA Toolkit 12 or newer, or put nvcc on PATH."
$rehearsal || nvidia-smi -L 2>/dev/null || give_up "No GPU answers nvidia-smi: only --build-only makes sense here."
[[ -d $root/carry/include ]] || give_up "carry/ is empty: run tests/carry_headers.sh where the packages are, and carry it here."

# A carried header comes first for CMake and for the compiler. MPI is not what this machine is for.
options=(-DCMAKE_PREFIX_PATH="$root/carry" -DDDP_MPI=OFF)
export CPATH=$root/carry/include
if ninja=$(command -v ninja); then
    options+=(-G Ninja -DCMAKE_MAKE_PROGRAM="$ninja")
fi
if $rehearsal; then  # one architecture, not optimised, and CMake looks into carry/ and nowhere else
    # PTX is optimised a little: ptxas takes five times as long for what is not. Newer nvcc have a level for it.
    cuda_flags="-O0 -Xptxas -O0"
    [[ $(nvcc --help) == *--Ofast-compile* ]] && cuda_flags="-O0 -Ofc=max"
    options+=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_UNITY_BUILD_BATCH_SIZE=24
        -DCMAKE_CUDA_FLAGS_DEBUG="$cuda_flags" -DCMAKE_CUDA_ARCHITECTURES=90 -DCMAKE_CUDA_COMPILER="$(command -v nvcc)"
        -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF)
    CXX=$(command -v "${CXX:-g++}") && export CXX
fi

# Whether this call does a phase; how many seconds of the call are left.
does() { [[ " ${phases[*]} " == *" $1 "* ]]; }
left() { if [[ $limit == infinity ]]; then echo 86400; else echo $((limit > SECONDS ? limit - SECONDS : 1)); fi; }
# Ends a call whose phase is not over.
to_be_continued() {
    echo "to be continued: call gpu_machine.sh --$1 again"
    exit 75
}

configure_and_build() {
    (cd "$root" && cmake --preset cuda -B "$folder" "${options[@]}") &&
        timeout "$(left)" cmake --build "$folder" --parallel "$cores" --target "${targets[@]}"
}
# The compiler looks into /usr/include all the same; what it took from a package that does not belong to
# the compiler itself would be missing on the other machine.
foreign_headers() {
    "$ninja" -C "$folder" -t deps | grep -oE '^ +/usr/include/.*' | sort -u |
        xargs -r dpkg -S 2>/dev/null | grep -vE '^(libc6-dev|linux-libc-dev|libstdc\+\+-|libcrypt-dev|libgcc-)'
}

if does build; then
    configure_and_build
    case $? in
        0) ;;
        124 | 137) to_be_continued build ;;
        *) give_up "The CUDA build failed." ;;
    esac
    echo "built for CUDA in $SECONDS s: $(find "$folder/bin" -type f | wc -l) programs"
fi
if $rehearsal; then
    echo "none of them run: this was a rehearsal without a GPU, and without optimising"
    if [[ -z $ninja ]] || ! command -v dpkg >/dev/null; then
        echo "not checked that every header was carried: that takes Ninja and dpkg"
    elif foreign_headers; then
        give_up "These headers are not carried: the build used this machine's packages."
    fi
    exit
fi
[[ ${phases[*]} != build ]] || exit 0

# Kernels of several processes run at the same time on one GPU only under NVIDIA's Multi-Process Service: the tests that start
# processes skip those parts without it. It has a phase of its own, since all other tests are better off without: MPS gives each
# process connections that others then lack, and a fault of one process ends the others.
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
# run_tests PHASE FILTER...: those tests that the filter of ctest takes and that have not passed in this phase yet.
run_tests() {
    local phase=$1 passed=$folder/passed_$1 before stop=() rc
    shift
    touch "$passed" "$log"
    before=$(paste -sd '|' "$passed")
    [[ $limit == infinity ]] || stop=(--stop-time "$(date -d "+$(left) seconds" +%T)")
    ctest --test-dir "$folder" "$@" -LE '^(meta|slow)$' -E "^(${before:-none})$" --output-on-failure -j "$cores" "${stop[@]}" |
        tee "$folder/$phase.now"
    rc=${PIPESTATUS[0]}
    cat "$folder/$phase.now" >>"$log"
    sed -nE 's/.* Test +#[0-9]+: ([^ ]+) \.+( +Passed|\*\*\*Skipped) .*/\1/p' "$folder/$phase.now" >>"$passed"
    grep -q 'The CTest stop time has been passed' "$folder/$phase.now" && to_be_continued "$phase"
    ((rc == 0)) || failed+=("ctest, $phase")
}
run_benches() {
    local name program
    mkdir -p "$out"
    for name in $(find "$root/tests/bench" -name 'bench_*.c*' | sed 's|.*/||; s|\..*||' | sort); do
        program=$folder/bin/$name
        [[ -x $program ]] || continue  # it measures what only a CPU build has
        [[ $name != bench_nodes && $name != bench_tails ]] || continue  # ranks on several nodes; threads that play a GPU
        [[ $limit == infinity || ! -e $folder/$name.done ]] || continue
        (($(left) > 120)) || to_be_continued benches
        echo "== $name"
        if timeout "$(($(left) < 300 ? $(left) : 300))" "$program" --csv "$out/$name.csv" 2>&1 | tee "$out/$name.log"; then
            touch "$folder/$name.done"
        else
            failed+=("$name")
        fi
    done
}
[[ $limit != infinity ]] || rm -f "$folder"/passed_* "$folder"/*.now "$log"
if does tests; then run_tests tests; fi
if does processes; then
    if start_mps; then
        echo "MPS runs: processes share the GPU"
        run_tests processes -L '^processes$'
        end_mps
    else
        echo "no MPS: tests of processes that share a GPU are skipped"
    fi
fi
if does benches; then run_benches; fi

echo "== summary"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
nvcc --version | grep release
if [[ -f $log ]]; then
    echo "tests: $(grep -cE ' Test +#[0-9]+: .* Passed ' "$log") passed, $(grep -c '\*\*\*Skipped' "$log") skipped," \
        "$(cat "$folder"/*.now | grep -cE ' Test +#[0-9]+: .*\*\*\*(Failed|Timeout|Exception)') failed"
    sed -n 's/^SKIPPED: /skipped: /p' "$folder/Testing/Temporary/LastTest.log" | sort | uniq -c
fi
echo "benches: $(find "$out" -name 'bench_*.csv' | wc -l) CSV files in $out"
((${#failed[@]} == 0)) || give_up "failed: ${failed[*]}"
