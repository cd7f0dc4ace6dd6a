#!/usr/bin/env bash
# Which mode ./book takes and why: a GPU that answers and nvcc, or the CPU.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
little_book "$scratch/book"
book=$scratch/book/book
export PATH CUDA_HOME=$scratch/no-cuda
PATH=$(machine_without nvidia-smi nvcc)
stub() { printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod +x "$1"; }

expect 0 "cpu, because no GPU answers nvidia-smi" "$book" doctor
for verb in "run 01" test "bench slope"; do
    # shellcheck disable=SC2086  # verb and chapter are two words
    expect_sentence 1 "--gpu needs a GPU and nvcc, but no GPU answers nvidia-smi; without --gpu this runs on the CPU." "$book" $verb --gpu
done

stub "$PATH/nvidia-smi" 'echo "No devices were found"; exit 6'
expect 0 "cpu, because no GPU answers nvidia-smi" "$book" doctor

stub "$PATH/nvidia-smi" 'echo "GPU 0: Some GPU (UUID: GPU-1)"; echo "GPU 1: Other GPU (UUID: GPU-2)"'
expect 0 "cpu, because a GPU answers, but nvcc (CUDA Toolkit 12 or newer) is missing" "$book" doctor
[[ $output == *"Some GPU, Other GPU"* ]] || complain "the GPUs are not named: $output"
expect_sentence 1 "but a GPU answers, but nvcc" "$book" run 1 --gpu

mkdir -p "$CUDA_HOME/bin" "$CUDA_HOME/include"
stub "$CUDA_HOME/bin/nvcc" 'echo "Cuda compilation tools, release 13.0, V13.0.88"'
expect 0 "gpu, because nvidia-smi lists 2 GPU(s) and nvcc is here" "$book" doctor
[[ $output == *"$CUDA_HOME/bin/nvcc, 13.0"* ]] || complain "which nvcc? $output"
expect 1 "configuring build/cuda" "$book" run 1  # this nvcc compiles nothing
expect 0 "this is 01_line" "$book" run 1 --cpu
finish
