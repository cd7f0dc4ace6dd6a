#!/usr/bin/env bash
# The table of chapters/gpu.md: which kernels a step of the main job launches, in which shape, on an H100 that is only played.
#     gpu_table.sh [--make] FOLDER REGISTERS
# FOLDER is a build by nvcc, with bin/overlap; REGISTERS what SASS_REGISTERS=REGISTERS tests/sass_check.sh has written.
# Without --make it fails if the page shows another table.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
make=false
if [[ ${1:-} == --make ]]; then make=true && shift; fi
[[ $# == 2 ]] || { echo "gpu_table.sh takes a folder that nvcc has built, and a file of registers." >&2 && exit 2; }
folder=$(realpath "$1") registers=$(realpath "$2") page=$root/chapters/gpu.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
give_up() {
    echo "$*" >&2
    exit 1
}
toolkit=${CUDA_HOME:-/usr/local/cuda}

"${CXX:-g++}" -std=c++20 -shared -fPIC -I"$toolkit/include" "$root/tests/launches/played_gpu.cpp" -o "$scratch/played_gpu.so" ||
    give_up "The played GPU was not compiled."
(cd "$scratch" && PLAYED_GPU_LOG=$scratch/log LD_PRELOAD=$scratch/played_gpu.so LD_LIBRARY_PATH=$toolkit/lib64 \
    timeout 120 "$folder/bin/overlap" --ranks 2 --quick) >"$scratch/output" 2>&1
# Kernels do not run, so what the program then says of its results is nothing. The launches count.
[[ $(grep -c ' add_step ' "$scratch/log") -gt 40 ]] || give_up "The main job has not taken its steps: $(tail -n 5 "$scratch/output")"

# One step of rank 0, whose sums begin at element 0: from one launch of add_step, the step's last, to the next.
rank=$(awk '$2 == "reduce_scatter_kernel" && $9 == 0 { print $1; exit }' "$scratch/log")
awk -v rank="$rank" '
     $1 == rank && $2 == "add_step" { steps++ }
     $1 == rank && steps == 10 { if (passed++) print }
     $1 == rank && steps == 11 { print; exit }' "$scratch/log" >"$scratch/step"
sed -E 's/ /\t/' "$registers" | while IFS=$'\t' read -r name count; do printf '%s\t%s\n' "$(c++filt "$name")" "$count"; done >"$scratch/registers"

# Bytes that a kernel must read and write; a[i] is its i-th argument.
awk -F'\t' -v OFS='\t' '
    function bytes_of(kernel, a) {
        if (kernel == "bytes_to_floats" || kernel == "bytes_to_labels") return 5 * a[1]
        if (kernel == "add_bias_to_rows") return 8 * a[1] * a[2]
        if (kernel == "relu_backward_and_add_up") return 12 * a[1] * a[2]
        if (kernel == "add_up_rows") return 4 * a[1] * a[2]
        if (kernel == "mean_loss") return 8 * a[1] * a[2]
        if (kernel == "scale_gradient") return 8 * a[1]
        if (kernel == "add_step") return 4 * a[1] * a[2]
        if (kernel == "step_all_by_momentum") return 24 * a[1]                # gradients are read, and zeroed
        if (kernel == "reduce_scatter_kernel") return 4 * a[5] * 2 * 2        # of two ranks, to two ranks
        if (kernel == "gemm") return 4 * (a[1] * a[3] + a[3] * a[2] + a[1] * a[2])
        print "gpu_table.sh does not know how many bytes " kernel " moves: give it a line." >"/dev/stderr"
        failed = 1
    }
    function to_string(bytes) {
        return bytes < 10240 ? bytes " B" : bytes < 10485760 ? int(bytes / 1024 + 0.5) " KiB" : int(bytes / 1048576 + 0.5) " MiB"
    }
    FNR == NR { registers[$1] = $2; next }
    {
        count = split($0, word, " ")
        kernel = word[2]
        for (i in a) delete a[i]
        first = kernel == "gemm" ? 3 : 7
        for (i = first; i <= count; i++) a[i - first + 1] = word[i] + 0
        shape = kernel == "gemm" ? "gemm " word[3] " x " word[4] " x " word[5] : kernel
        blocks = threads = priority = ""
        if (kernel != "gemm") { blocks = word[3]; threads = word[4]; priority = word[5] < 0 ? "high" : "" }
        row = shape "\t" blocks "\t" threads "\t" to_string(bytes_of(kernel, a)) "\t" priority
        if (!(row in times)) { rows[++all] = row; name[row] = word[6] }
        times[row]++
    }
    END {
        if (failed) exit 1
        for (i = 1; i <= all; i++) {
            split(rows[i], cell, "\t")
            print cell[1], times[rows[i]], cell[2], cell[2] == "" ? "" : cell[2] < 132 ? cell[2] : 132, cell[3], name[rows[i]], cell[4], cell[5]
        }
    }' "$scratch/registers" "$scratch/step" >"$scratch/rows" || exit 1
{
    printf '\n| kernel | times | blocks | of 132 | threads a block | registers a thread | bytes | priority |\n'
    printf '| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n'
    while IFS='|' read -r kernel times blocks used threads name bytes priority; do
        count=''
        if [[ $kernel != gemm* ]]; then
            count=$(awk -F'\t' -v name="$(c++filt "$name")" '$1 == name { print $2 }' "$scratch/registers")
            [[ -n $count ]] || give_up "tests/sass_check.sh has not compiled $kernel: add its file to a group."
        fi
        printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "$kernel" "$times" "$blocks" "$used" "$threads" "$count" "$bytes" "$priority"
    done < <(tr '\t' '|' <"$scratch/rows")
    printf '\n'
} >"$scratch/table" || exit 1

awk -v table="$scratch/table" '
    /^<!-- launches -->$/ { print; while ((getline line <table) > 0) print line; skips = 1 }
    /^<!-- end of launches -->$/ { skips = 0 }
    !skips { print }' "$page" >"$scratch/page"
if $make; then
    cp "$scratch/page" "$page"
elif ! diff "$page" "$scratch/page"; then
    give_up "chapters/gpu.md shows another table: call tests/launches/gpu_table.sh --make, and read the text around it again."
fi
echo "one step of the main job on a played H100: $(wc -l <"$scratch/step") launches, as chapters/gpu.md says"
