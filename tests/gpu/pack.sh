#!/usr/bin/env bash
# Builds the programs that questions.sh runs on a machine with a GPU, and packs them with the pictures into carry/gpu: there, nothing is
# compiled or fetched. The machine needs a driver for CUDA 13, and its libraries cudart and cublas.
#     tests/gpu/pack.sh              for an H100 or H200
#     tests/gpu/pack.sh 80 90        for an A100, too
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
architectures=$(IFS=';' && echo "${*:-90}")
folder=build/cuda-pack pictures=/usr/share/datasets/fashion-mnist
command -v nvcc >/dev/null || { echo "No nvcc here: install the CUDA Toolkit 13, or put nvcc on PATH." >&2 && exit 1; }

mapfile -t programs < <(bash tests/gpu/questions.sh --programs)
# The processor there is another one, and MPI is not what the machine is for.
cmake --preset cuda -B $folder -DDDP_NATIVE=OFF -DDDP_MPI=OFF -DCMAKE_CUDA_ARCHITECTURES="$architectures"
cmake --build $folder --parallel "$(nproc)" --target "${programs[@]}"
mkdir -p carry/gpu/bin
for program in "${programs[@]}"; do
    strip -o "carry/gpu/bin/$program" "$folder/bin/$program"
done
tar -C carry/gpu -cf - bin | xz --lzma2=preset=1,dict=128MiB,depth=4,nice=64 >carry/gpu/bin.tar.xz
rm -r carry/gpu/bin
if [[ -d $pictures ]]; then cp -r $pictures carry/gpu/; fi
du -sh carry/gpu
