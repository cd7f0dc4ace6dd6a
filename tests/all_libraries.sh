#!/usr/bin/env bash
# CUDA, MPI and NCCL at once: the files that call MPI or NCCL are compiled for a CUDA build that has both. The rehearsal of gpu_machine.sh
# leaves MPI out. Ten seconds of one core: their text is checked (-fsyntax-only), and they hold no kernels, which would take nvcc.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
cuda=${CUDA_HOME:-/usr/local/cuda}
missing=()
command -v mpicxx >/dev/null || missing+=(mpicxx)
for header in cuda_runtime.h nccl.h; do
    [[ -f $cuda/include/$header ]] || missing+=("$cuda/include/$header")
done
if ((${#missing[@]} > 0)); then
    echo "not compiled for CUDA, MPI and NCCL at once: ${missing[*]} is not here"
    exit
fi
read -ra mpi < <(mpicxx --showme:compile 2>/dev/null || mpicxx -compile_info | grep -oE -- '-I[^ ]+' | xargs)
compiled() {
    "${CXX:-g++}" -std=c++20 -fsyntax-only -Wall -Wextra -Werror -DDDP_CUDA -DDDP_MPI -DDDP_NCCL -DMPICH_SKIP_MPICXX \
        -DOMPI_SKIP_MPICXX -I. -Ichapters -isystem "$cuda/include" "${mpi[@]/#-I/-isystem}" "$@"
}
# What calls something that NCCL does not have must not pass.
if compiled -x c++ - <<<$'#include <nccl.h>\nvoid call() { ncclNothing(); }' 2>/dev/null; then
    echo "FAILED: a call of nothing is compiled" && exit 1
fi
mapfile -t files < <(grep -rlE 'defined\(DDP_(MPI|NCCL)\)' chapters tests/bench --include='*.cpp' --include='*.cu' | sort)
failed=()
for file in "${files[@]}"; do
    compiled "$file" || failed+=("$file")
done
((${#failed[@]} == 0 && ${#files[@]} >= 6)) || { echo "FAILED: for CUDA, MPI and NCCL at once, of ${#files[@]} files: ${failed[*]}" && exit 1; }
echo "compiled for CUDA, MPI and NCCL at once: ${#files[@]} files"
