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
stub "$PATH/nvcc" 'echo "Cuda compilation tools, release 11.5, V11.5.119"'  # as Ubuntu 22.04 has it
expect 0 "cpu, because a GPU answers, but nvcc (CUDA Toolkit 12 or newer) is missing: $PATH/nvcc is 11.5" "$book" doctor
expect_sentence 1 "is missing: $PATH/nvcc is 11.5; without --gpu this runs on the CPU." "$book" run 1 --gpu

# A newer one behind it is taken.
stub "$CUDA_HOME/bin/nvcc" 'echo "Cuda compilation tools, release 13.0, V13.0.88"'
expect 0 "gpu, because nvidia-smi lists 2 GPU(s) and nvcc is here" "$book" doctor
[[ $output == *"$CUDA_HOME/bin/nvcc, 13.0"* ]] || complain "which nvcc? $output"
expect 1 "configuring build/cuda" "$book" run 1  # this nvcc compiles nothing
grep -q "^DDP_NVCC:[A-Z]*=$CUDA_HOME/bin/nvcc" "$scratch/book/build/cuda/CMakeCache.txt" || complain "CMake has not found the newer nvcc"
expect 0 "this is 01_line" "$book" run 1 --cpu

stub "$PATH/nvidia-smi" 'case $* in *compute_cap*) echo 8.6; echo 6.1 ;; *) echo "GPU 0: Some GPU (UUID: GPU-1)" ;; esac'
expect_sentence 1 "this GPU's compute capability is 6.1, and the book needs 7.5 (Turing) or newer; without" "$book" run 1 --gpu
stub "$PATH/nvidia-smi" 'case $* in *compute_cap*) echo 7.5; echo 12.0 ;; *) echo "GPU 0: Some GPU (UUID: GPU-1)" ;; esac'
expect 0 "gpu, because nvidia-smi lists 1 GPU(s) and nvcc is here" "$book" doctor
finish
