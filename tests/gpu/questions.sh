#!/usr/bin/env bash
# Fifteen minutes on a machine with a GPU: the questions that decide most, in order, by the programs that pack.sh has packed. Each has a
# limit; a program that still runs at two thirds of it leaves the stacks of all its threads. What fails is written down, and the next
# question is asked.
#     tests/gpu/questions.sh                   all, in the folder $OUT (or out/): answers.tar.xz has every output
#     tests/gpu/questions.sh stand_still ...   these
#     tests/gpu/questions.sh --programs        what they run, a line each
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
out=${OUT:-out}/answers limit=${QUESTIONS_SECONDS:-540} pack=carry/gpu
bin=${QUESTIONS_BIN:-/tmp/questions/bin} pictures=$pack/fashion-mnist
cuda=${CUDA_HOME:-/usr/local/cuda} PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
# NCCL may be in PyTorch's packages only.
packages=$(python3 -c 'import glob, nvidia; print(":".join(glob.glob(list(nvidia.__path__)[0] + "/*/lib")))' 2>/dev/null)
ours=(env LD_LIBRARY_PATH="$cuda/lib64:$packages")

# ---- How

# stacks PID NAME: what each thread of that session does, and where.
stacks() {
    local process task
    for process in $(pgrep -s "$1"); do  # a supervised job leads a group of its own
        echo "== process $process: $(tr '\0' ' ' <"/proc/$process/cmdline")"
        for task in /proc/"$process"/task/*; do
            echo "${task##*/} $(cat "$task/comm" "$task/wchan" 2>/dev/null | tr '\n' ' ')$(awk '/^State/ { print $2 }' "$task/status")"
        done
        if command -v cuda-gdb >/dev/null; then
            timeout -k 2 20 cuda-gdb -p "$process" -batch -ex "info cuda kernels" -ex "thread apply all bt 30" 2>&1 |
                grep -vE '^(\[New|warning|Reading|Downloading)'
        fi
    done >"$out/$2.stacks.txt" 2>&1
}
# ask NAME SECONDS command...: its output is $out/NAME.txt. Without a stand-still it ends long before the limit.
ask() {
    local name=$1 seconds=$2 begin=$SECONDS status looked=false
    shift 2
    ((SECONDS + seconds < limit)) || { echo "-- $name: not asked, $((limit - SECONDS)) s are left" && return; }
    setsid "$@" >"$out/$name.txt" 2>&1 </dev/null &
    local pid=$!
    while kill -0 $pid 2>/dev/null; do
        sleep 0.1
        if ! $looked && ((3 * (SECONDS - begin) >= 2 * seconds)); then
            looked=true
            stacks $pid "$name"
        fi
        ((SECONDS - begin < seconds)) || pkill -9 -s $pid
    done
    { wait $pid; } 2>/dev/null
    status=$?
    if ((status != 0)); then tail -n 4 "$out/$name.txt" | cut -c1-400; fi
    echo "-- $name: exit $status after $((SECONDS - begin)) s" | tee -a "$out/$name.txt"
}
# here NAME COMMAND...: whether that can be asked here, which COMMAND tells.
here() {
    "${@:2}" >/dev/null 2>&1 || { echo "-- $1: cannot be asked here" && return 1; }
}
# program NAME SECONDS PROGRAM argument...
program() { ask "$1" "$2" "${ours[@]}" "$bin/$3" "${@:4}"; }

# ---- The questions, most wanted first

# Does anything stand still?
stand_still() {
    program all_reduce_2 16 bench_all_reduce --ranks 2 --sizes 4,64,1024 --jobs 1 --rounds 2 --timeout 5
    program host_ring 16 bench_all_reduce --ranks 2 --sizes 4,1024 --jobs 1 --rounds 5 --timeout 5 --algorithm "host ring"
    program test_all_reduce 60 test_all_reduce '~[exhaustive]~[.]'
    program messages 16 messages --ranks 2 --timeout 5 --csv "$out/messages.csv"
}
# Does a supervised training, which once stood still, end in the same bits when a rank is killed?
failover() {
    local run
    for run in 1 2; do
        program failover_$run 60 checkpoint_failover --quick --ranks 3 --timeout 6 --data $pictures
    done
}
# What fills a queue, and who is kept out? What does polling cost?
probe() {
    program probe_queue 60 gpu_probe full_queue
    program probe_streams 60 gpu_probe copies new_streams
    program probe_polling 20 gpu_probe start polling bandwidth
}
sums() {
    local ranks
    for ranks in 2 1 3; do
        program sums_$ranks 60 bench_all_reduce --ranks $ranks --sizes 4,16,64,256,1024,4096,16384,65536 --jobs 1 --rounds 5 --timeout 10 \
            --csv "$out/bench_all_reduce_$ranks.csv"
    done
}
# The step: ours, its products alone, PyTorch's, PyTorch's in a graph.
steps() {
    program train_mlp 60 bench_train --ranks 1,2 --model mlp --rounds 5 --pytorch off --csv "$out/bench_train_mlp.csv"
    program train_cnn 60 bench_train --ranks 1,2 --model cnn --rounds 5 --pytorch off --csv "$out/bench_train_cnn.csv"
    program train_cnn_1024 60 bench_train --ranks 1 --model cnn --batch 1024 --rounds 5 --pytorch off --csv "$out/bench_train_cnn_1024.csv"
    here pytorch python3 -c "import torch" || return
    local model graph
    for model in "mlp" "cnn" "cnn --batch 1024"; do
        for graph in "" --graph; do
            # shellcheck disable=SC2086  # words
            ask "pytorch_${model// /_}$graph" 40 python3 tests/golden/pytorch_train.py --device cuda --steps 400 --model $model $graph
        done
    done
}
overlaps() {
    program overlap_bench 40 bench_overlap --ranks 2 --rounds 5 --csv "$out/bench_overlap.csv"
    local run
    for run in 1 2; do
        program overlap_4_$run 20 overlap --ranks 4 --epochs 1 --timeout 8 --data $pictures
    done
}
nccl() { program nccl_1 20 overlap --ranks 1 --communicator nccl --quick --timeout 8 --data $pictures; }
later_chapters() {
    local run
    for run in 1 2; do
        program transformer_$run 25 transformer --quick --ranks 2 --timeout 8
        program sharded_$run 25 sharded --quick --ranks 3 --timeout 8 --data $pictures
        program mesh_$run 25 mesh --quick --ranks 4 --timeout 8
    done
}
# A sanitizer lets one kernel run at a time, so one rank, whose kernels wait for nobody.
sanitizers() {
    here sanitizers command -v compute-sanitizer || return
    ask memcheck_reduce 40 "${ours[@]}" compute-sanitizer --tool memcheck "$bin/test_block_reduce"
    ask racecheck_reduce 90 "${ours[@]}" compute-sanitizer --tool racecheck "$bin/test_block_reduce"
    ask memcheck_overlap 60 "${ours[@]}" compute-sanitizer --tool memcheck "$bin/overlap" --quick --ranks 1 --timeout 30 --data $pictures
}
processes() {
    here processes command -v nvidia-cuda-mps-control || return
    CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d) && export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY
    nvidia-cuda-mps-control -d
    program processes_messages 15 messages --quick --processes 2 --timeout 6
    program processes_overlap 30 overlap --processes 4 --epochs 1 --timeout 8 --data $pictures
    echo quit | nvidia-cuda-mps-control
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}
profile() {
    here profile command -v ncu || return
    local kernels
    for kernels in step_all_by_momentum "sum_planes|plane_moments"; do
        ask "ncu_${kernels%%|*}" 40 "${ours[@]}" ncu --clock-control none -k "regex:$kernels" -c 3 "$bin/overlap" --model cnn --quick --ranks 1 \
            --timeout 30 --data $pictures
    done
}
programs=(gpu_probe messages bench_all_reduce test_all_reduce checkpoint_failover bench_train bench_overlap overlap transformer sharded
    mesh test_block_reduce)
questions=(stand_still failover probe sums steps overlaps nccl later_chapters sanitizers processes profile)

if [[ ${1-} == --programs ]]; then
    printf '%s\n' "${programs[@]}"
    exit
fi
mkdir -p "$out" /tmp/questions
[[ -d $bin ]] || tar -C /tmp/questions -xf $pack/bin.tar.xz || exit 1
nvidia-smi >"$out/machine.txt" 2>&1
{ lscpu | head -n 20 && nvcc --version; } >>"$out/machine.txt" 2>&1
for question in "${@:-${questions[@]}}"; do
    echo "== $question ($SECONDS s)"
    "$question"
done
tar -C "$(dirname "$out")" -cJf "$out.tar.xz" answers
