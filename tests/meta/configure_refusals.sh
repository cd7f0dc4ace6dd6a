#!/usr/bin/env bash
# What CMake refuses, each in words that say what to do. The little book shows first that the very same
# tree configures when nothing is wrong with it.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
dir=$scratch/book
little_book "$dir"
list=$dir/chapters/CMakeLists.txt
export PATH
PATH=$(machine_without nvcc nvidia-smi)
unset CUDACXX CUDA_HOME CUDA_PATH

# refused TEXT cmake-arguments...: CMake folds its messages, so spaces and line ends count as one.
refused() {
    local text=$1
    shift
    expect 1 "CMake Error" cmake "$@"
    [[ $(tr -s ' \n' ' ' <<<"$output") == *"$text"* ]] || complain "\`cmake $*\` did not say '$text' but: $output"
}
configures() { expect 0 "Kernels: this CPU" cmake -S "$dir" -B "$scratch/build" -DDDP_CUDA=OFF; }

configures
refused "Build outside the source folder: delete CMakeCache.txt and CMakeFiles/, then run \`cmake --preset cpu\`" \
    -S "$dir" -B "$dir"
for option in DDP_CUDA DDP_MPI DDP_NCCL; do
    refused "$option is 'MAYBE'; it must be AUTO, ON or OFF." -S "$dir" -B "$scratch/maybe" -D$option=MAYBE
    rm -rf "$scratch/maybe"
done
refused "DDP_SANITIZE is 'memory'; it must be empty, address,undefined, thread or races." \
    -S "$dir" -B "$scratch/memory" -DDDP_SANITIZE=memory

cd "$dir" || exit 1
refused "DDP_CUDA=ON needs nvcc, and none was found: install the CUDA Toolkit 12 or newer and put nvcc on PATH, or use the preset cpu" \
    --preset cuda
printf '#!/bin/sh\necho "Cuda compilation tools, release 11.8, V11.8.89"\n' >"$PATH/nvcc" && chmod +x "$PATH/nvcc"
refused "DDP_CUDA=ON needs nvcc, and $PATH/nvcc is 11.8: install the CUDA Toolkit 12 or newer and put nvcc on PATH" --preset cuda
rm "$PATH/nvcc"
cd "$scratch" || exit 1
for preset in cpu cpu-asan cpu-tsan cpu-races cuda; do
    grep -q "\"name\": \"$preset\"" "$dir/CMakePresets.json" || complain "the preset $preset is gone"
done

mkdir "$dir/chapters/42_orphan"
refused "chapters/42_orphan is not in the list of chapters/CMakeLists.txt: add a line ddp_add_chapter(42_orphan PARENT ...)" \
    -S "$dir" -B "$scratch/build" -DDDP_CUDA=OFF
rmdir "$dir/chapters/42_orphan"
configures

cp "$list" "$scratch/list"
sed -i 's/PARENT 01_line/PARENT 03_later/' "$list"
refused "Chapter 02_slope grows from 03_later, which must stand above it in the list." -S "$dir" -B "$scratch/build"
cp "$scratch/list" "$list"
mv "$dir/chapters/01_line/README.md" "$scratch"
refused "Chapter 01_line has no README.md." -S "$dir" -B "$scratch/build"
mv "$scratch/README.md" "$dir/chapters/01_line"
touch "$dir/chapters/01_line/main.cu"
refused "Chapter 01_line needs one main.cu or one main.cpp; it has 2." -S "$dir" -B "$scratch/build"
finish
