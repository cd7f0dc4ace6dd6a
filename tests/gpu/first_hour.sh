#!/usr/bin/env bash
# The first hour on a machine with a GPU, in calls of at most ten minutes. tests/gpu_machine.sh does everything; this asks first what
# most of the rest depends on, and says as soon as possible what is red:
#     tests/gpu/first_hour.sh prepare       where the packages are: fills carry/, and packs what the other machine needs
#     tests/gpu/first_hour.sh probe         what the GPU and its driver do (probe.cu), and what MPS listens at
#     tests/gpu/first_hour.sh build         the programs that follow, most wanted first
#     tests/gpu/first_hour.sh tests         those without processes, one at a time, in the order in which they depend on each other
#     tests/gpu/first_hour.sh programs      as a reader starts them, with short time-outs
#     tests/gpu/first_hour.sh numbers       bandwidths and steps, PyTorch beside them
#     tests/gpu/first_hour.sh sanitizers    NVIDIA's compute-sanitizer, and ncu for kernels that wait for nobody
#     tests/gpu/first_hour.sh list          what all of these build and run, a line each
# A call that ends with 75 was not over: the next one goes on. Whole outputs are in $OUT, or in out/ if it is not set.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
out=${OUT:-out} folder=build/cuda bin=build/cuda/bin limit=${FIRST_HOUR_SECONDS:-570} data=carry/fashion-mnist
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin

give_up() {
    echo "$*" >&2
    exit 1
}
# The seconds that are left of this call, at least none.
left() { echo $((limit > SECONDS ? limit - SECONDS : 0)); }
least() { echo $(($1 < $2 ? $1 : $2)); }

# ---- What is built and run

targets=("gpu_probe" "test_kernels test_half test_streams test_ipc test_block_reduce bench_runtime"
    "test_peers test_broadcast test_tree_reduce test_all_reduce messages all_reduce"
    "overlap test_layers test_training test_ddp test_reducer bench_train bench_all_reduce bench_reduce" "all rest")
tests=(kernels half ipc streams block_reduce small_kernels tape by_hand accumulation layers training peers stages small_gpu broadcast
    tree_reduce all_reduce groups replicas sampler flat_buffers first_backward ddp reducer ddp_training compression recipe_lessons find_unused
    sync_norm checkpoints resume transformer_layers sharded_bits)
# Lines of output to show, and the program. "$data" is the folder of Fashion-MNIST.
programs() {
    cat <<'END'
12 messages --quick --ranks 2 --timeout 5
12 messages --quick --ranks 4 --timeout 5
6 broadcast --quick --ranks 4 --timeout 5
6 reduce --quick
20 all_reduce --quick --ranks 2 --timeout 5
20 all_reduce --quick --ranks 4 --timeout 5
6 overlap --model cnn --quick --ranks 2 --timeout 5 --data $data
14 overlap --ranks 4 --epochs 1 --timeout 10 --data $data
14 overlap --ranks 4 --epochs 1 --timeout 10 --data $data
6 overlap --ranks 8 --epochs 1 --timeout 10 --data $data
6 async --quick --ranks 2 --timeout 5 --data $data
6 buckets --quick --ranks 4 --timeout 5
6 unused_parameters --quick --ranks 3 --timeout 5
6 sync_batch_norm --quick --ranks 3 --timeout 5
6 checkpoint_failover --quick --ranks 3 --timeout 5 --data $data
6 transformer --quick --ranks 2 --timeout 5
6 sharded --quick --ranks 3 --timeout 5 --data $data
3 messages --quick --processes 2
12 messages --quick --processes 2 --slowly --timeout 20
END
}
numbers() {
    cat <<'END'
60 bench_runtime --elements 268435456 --csv $out/runtime.csv
60 bench_reduce --elements 268435456 --rounds 5 --csv $out/reduce.csv
120 bench_all_reduce --ranks 1,2,4 --sizes 4,64,1024,65536 --jobs 1 --rounds 5 --csv $out/all_reduce.csv
60 bench_train --ranks 1,2 --model mlp --rounds 5 --csv $out/train_mlp.csv
60 bench_train --ranks 1,2 --model cnn --rounds 5 --csv $out/train_cnn.csv
60 bench_train --ranks 1 --model cnn --batch 1024 --rounds 5 --csv $out/train_cnn_1024.csv
60 bench_overlap --ranks 2 --rounds 5 --csv $out/overlap.csv
END
}
# A sanitizer may let one kernel run at a time: one rank first, whose kernels wait for nobody, and two ranks with a short time-out.
sanitizers() {
    cat <<'END'
memcheck test_block_reduce
racecheck test_block_reduce
memcheck overlap --quick --ranks 1 --timeout 20 --data $data
memcheck bench_all_reduce --quick --ranks 1 --jobs 1
memcheck all_reduce --quick --ranks 2 --timeout 20
END
}
# Kernels for ncu, which runs one at a time: of a program in which none waits for another rank's.
profiled() {
    cat <<'END'
network --model cnn --quick --data $data: plane_moments mean_loss add_step add_up_rows sum_planes step_momentum
bench_all_reduce --ranks 1 --sizes 65536 --rounds 1 --jobs 1: reduce_scatter_kernel one_shot_kernel
END
}
list() {
    tr ' ' '\n' <<<"${targets[*]}" | sed 's/^/target /'
    printf 'test %s\n' "${tests[@]}"
    programs | sed 's/^[0-9]*/run/'
    numbers | sed 's/^[0-9]*/run/'
    sanitizers | sed 's/^[a-z]*/run/'
    profiled | sed 's/^/run /; s/:.*//'
    profiled | sed 's/.*: //' | tr ' ' '\n' | sed 's/^/kernel /'
}

# ---- How

# Puts the folder of the data and that of outputs where the tables above name them.
filled_in() { sed "s|\$data|$data|g; s|\$out|$out|g"; }
has_data() { [[ $1 != *"$data"* || -d $data ]] || ! echo "SKIPPED: no Fashion-MNIST in $data, which takes: $1"; }
# limited SECONDS command...: runs it no longer than this, or than the call may take.
limited() {
    local seconds
    seconds=$(least "$1" "$(left)")
    shift
    timeout -k 5 "$seconds" "$@"
}
to_be_continued() {
    echo "to be continued: call first_hour.sh $phase again"
    exit 75
}
# Ends the call if too little of it is left for anything more.
need_time() { (($(left) >= 10)) || to_be_continued; }
# try LINES SECONDS command...: runs it, keeps all that it prints, and shows the last lines.
try() {
    local lines=$1 seconds=$2 begin=$SECONDS
    shift 2
    echo "===== $*" | tee -a "$out/$phase.txt"
    limited "$seconds" "$@" >"$out/one.log" 2>&1 </dev/null
    local status=$?
    cat "$out/one.log" >>"$out/$phase.txt"
    tail -n "$lines" "$out/one.log"
    echo "exit $status, $((SECONDS - begin)) s"
    ((status == 0))
}
# Remembers what is done, so that the next call goes on behind it.
is_done() { grep -qxF "$*" "$folder/first_hour_$phase" 2>/dev/null; }
note_done() { echo "$*" >>"$folder/first_hour_$phase"; }
failed=()
# once LINES SECONDS command...: tries what no call before has done.
once() {
    local lines=$1 seconds=$2
    shift 2
    is_done "$*" && return
    has_data "$*" || return 0
    need_time
    try "$lines" "$seconds" "$@" || failed+=("$*")
    note_done "$*"
}
summary() {
    rm -f "$folder/first_hour_$phase"
    ((${#failed[@]} == 0)) && echo "== $phase: all passed" && return
    echo "== $phase: red are"
    printf '     %s\n' "${failed[@]}"
    return 1
}

prepare() {
    bash tests/carry_headers.sh || exit 1
    has_data "$data"
    { git ls-files --cached --others --exclude-standard && find carry -type f; } | tar -czf "$out/first_hour.tar.gz" -T - &&
        echo "$out/first_hour.tar.gz has the book and carry/: unpack it on the machine with the GPU, and call first_hour.sh probe there"
}

probe() {
    nvidia-smi
    nvcc --version | grep release
    cmake --version | head -n 1
    GPU_MACHINE_SECONDS=$(left) bash tests/gpu_machine.sh --build gpu_probe >"$out/probe_build.txt" 2>&1 || {
        tail -n 20 "$out/probe_build.txt"
        give_up "The probe is not built: $out/probe_build.txt says why."
    }
    limited 180 $bin/gpu_probe 2>&1 | tee "$out/probe.txt"
    echo "===== kernels are loaded at their first launch"
    DDP_KEEP_CUDA_VARIABLES=1 CUDA_MODULE_LOADING=LAZY limited 60 $bin/gpu_probe start calls 2>&1 | tee "$out/probe_lazy.txt"
    echo "===== all streams share a queue"
    DDP_KEEP_CUDA_VARIABLES=1 CUDA_DEVICE_MAX_CONNECTIONS=1 limited 60 $bin/gpu_probe side_by_side streams 2>&1 |
        tee "$out/probe_one_queue.txt"
    mps_socket
}
# The kind of the socket at which MPS listens, by which the book finds it: 0005 is SOCK_SEQPACKET.
mps_socket() {
    command -v nvidia-cuda-mps-control >/dev/null || { echo "no MPS here" && return; }
    CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d) && export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY
    if nvidia-cuda-mps-control -d; then
        awk -v path="$CUDA_MPS_PIPE_DIRECTORY/control" '$8 == path { print "MPS listens at a socket of kind " $5 ($5 == "0005" ? ": ok" : ": THE BOOK LOOKS FOR 0005") }' \
            "${PROC_NET_UNIX:-/proc/net/unix}"
        echo quit | nvidia-cuda-mps-control
    fi
    rm -rf "$CUDA_MPS_PIPE_DIRECTORY"
}

build() {
    local stage
    for stage in "${targets[@]}"; do
        need_time
        # shellcheck disable=SC2086  # several targets
        GPU_MACHINE_SECONDS=$(left) bash tests/gpu_machine.sh --build $stage >"$out/one.log" 2>&1
        case $? in
            0) ;;
            75) to_be_continued ;;
            *) failed+=("$stage") && grep -E -A5 'error|FAILED' "$out/one.log" | head -n 20 ;;
        esac
        cat "$out/one.log" >>"$out/build.txt"
        echo "== $SECONDS s: $stage"
    done
    summary
}
run_tests() {
    local name
    for name in "${tests[@]}"; do
        if [[ -x $bin/test_$name ]]; then
            once 1 60 "$bin/test_$name" '~[exhaustive]~[.]'
        else
            echo "test_$name is not built" && failed+=("test_$name")
        fi
    done
    summary
}
run_table() {  # run_table FUNCTION: lines of a number, for how much to show or how long to run, and of a program
    local number command words
    while read -r number command; do
        read -ra words <<<"$bin/$command"
        if [[ $1 == numbers ]]; then once 100 "$number" "${words[@]}"; else once "$number" 90 "${words[@]}"; fi
    done < <("$1" | filled_in)
    summary
}
run_sanitizers() {
    local tool command kernel words
    metrics=sm__warps_active.avg.pct_of_peak_sustained_active,dram__throughput.avg.pct_of_peak_sustained_elapsed,gpu__time_duration.sum
    metrics+=,smsp__inst_executed_op_local_st.sum,launch__registers_per_thread
    while read -r tool command; do
        read -ra words <<<"$bin/$command"
        once 8 120 compute-sanitizer --tool "$tool" "${words[@]}"
    done < <(sanitizers | filled_in)
    while IFS=: read -r command kernels; do
        read -ra words <<<"$bin/$command"
        for kernel in $kernels; do
            once 14 60 ncu --target-processes all --clock-control none --metrics $metrics -k "regex:^$kernel" -c 2 "${words[@]}"
        done
    done < <(profiled | filled_in)
    summary
}

phase=${1-}
case $phase in
    list) list && exit ;;
    prepare | probe | build | tests | programs | numbers | sanitizers) mkdir -p "$out" ;;
esac
case $phase in
    prepare) prepare ;;
    probe) probe ;;
    build | tests | programs | numbers | sanitizers)
        [[ $phase == build || -d $bin ]] || give_up "Nothing is built here: call first_hour.sh build first."
        case $phase in
            build) build ;;
            tests) run_tests ;;
            sanitizers) run_sanitizers ;;
            *) run_table "$phase" ;;
        esac
        ;;
    *) give_up "first_hour.sh takes prepare, probe, build, tests, programs, numbers, sanitizers or list." ;;
esac
