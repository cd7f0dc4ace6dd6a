#!/usr/bin/env bash
# device_stubs.sh FOLDER: looks for host code that calls a function for devices alone, in what nvcc has compiled under FOLDER.
# nvcc refuses such a call, but not in a template: there the host's half of the __device__ function is a stub that ends the program,
# exit(1), without a word. First a source with that mistake must be found out.
set -euo pipefail
if (($# != 1)) || [[ -z $(find "$1" -name '*.cu.o' -print -quit) ]]; then
    echo "device_stubs.sh takes the folder of a build by nvcc." >&2
    exit 2
fi
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Prints "object: caller calls function" for each such call in the object.
calls_of_stubs() {  # OBJECT
    objdump -dr --no-show-raw-insn "$1" | awk -v object="$1" '
        /^[0-9a-f]+ <.*>:$/ {  # a function begins
            function_name = $0
            sub(/^[0-9a-f]+ </, "", function_name)
            sub(/>:$/, "", function_name)
            calls = 0
        }
        /\tcall / { calls++ }
        # The stub sets a variable to 1 and hands it to exit; that is all it calls.
        /R_X86_64_(PLT32|PC32)\texit-0x4$/ && calls == 1 && sets == function_name { is_stub[function_name] = 1 }
        /\tmovl? +\$0x1,.*\(%r[bs]p\)$/ { sets = function_name }
        # A call within a section has its target in the line, any other in the relocation below it.
        /\tcall .*<.*>$/ {
            target = $0
            sub(/^[^<]*</, "", target)
            sub(/>$/, "", target)
            calls_it[++n] = function_name SUBSEP target
            line = NR
        }
        /R_X86_64_(PLT32|PC32)\t/ && NR == line + 1 {
            target = $0
            sub(/^.*R_X86_64_(PLT32|PC32)\t/, "", target)
            sub(/-0x4$/, "", target)
            calls_it[n] = function_name SUBSEP target
        }
        END {
            for (i = 1; i <= n; i++) {
                split(calls_it[i], call, SUBSEP)
                if (call[2] in is_stub)
                    print object ": " call[1] " calls " call[2]
            }
        }' | c++filt
}
export -f calls_of_stubs

# Checks all objects of a folder that use exit at all. Prints what is wrong.
check() {  # FOLDER
    # shellcheck disable=SC2016  # for the inner shell
    find "$1" -name '*.o' -print0 | xargs -0 -r nm -uA 2>/dev/null | sed -n 's/:  *U exit$//p' |
        xargs -r -P "$(nproc)" -d '\n' -I {} bash -c 'calls_of_stubs "$1"' _ {}
}

cat >"$folder/witness.cu" <<'END'
__device__ inline int half(int n) { return n / 2; }
namespace {
__device__ int twice(int n) { return n * 2; }
}
template <class T>
int half_on_the_host(T n) { return half(n); }
template <class T>
int twice_on_the_host(T n) { return twice(n); }
int main() { return half_on_the_host(2) + twice_on_the_host(2); }
END
nvcc -std=c++20 -O0 -c "$folder/witness.cu" -o "$folder/witness.o" 2>"$folder/words" ||  # it warns at most
    { echo "FAILED: the witness cannot be compiled" && cat "$folder/words" && exit 1; }
found=$(check "$folder")
[[ $found == *" calls half(int)"* && $found == *"::twice(int)"* ]] ||
    { echo "FAILED: a call of a __device__ function by a template of the host is not found in the witness" && exit 1; }
found=$(check "$1")
if [[ -n $found ]]; then
    echo "FAILED: on a GPU's machine these calls end the program with status 1 and no word: the function is for devices alone."
    echo "$found"
    exit 1
fi
echo "no host code calls a function that is for devices alone"
