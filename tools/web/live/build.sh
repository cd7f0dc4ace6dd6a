#!/usr/bin/env bash
# Compiles chapter 02's programs for the page: build.sh [FILE.wasm]. README.md says what it takes. Beside it, FILE.json has the line of
# the kernel on which each of its calls stands, by the call's place in the module: so the page knows where a thread is.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
made=${1:-$here/kernels.wasm}
{ command -v clang++-19 && command -v wasm-ld-19; } >/dev/null || {
    echo "error: this takes clang-19, lld-19 and libraries for WebAssembly; tools/web/live/README.md names their packages." >&2
    exit 1
}
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT

compile() {  # OBJECT SOURCE options...: beside the others
    clang++-19 --target=wasm32-wasi -x c++ -std=c++20 -Os -gline-tables-only -fno-rtti -stdlib=libc++ -Wall -Wextra -Werror -mbulk-memory -fwasm-exceptions \
        -mllvm -wasm-enable-eh -ffile-prefix-map="$root"/= -I"$root" -I"$root/chapters" -I"$root/common/cuda_on_cpu/include" \
        "${@:3}" -c "$2" -o "$objects/$1.o" &
}
# Each access to memory is announced by a call, also a read that a write to the same place follows.
for name in race tree; do
    compile "$name" "$root/chapters/02_kernels/$name.cu" -Xclang -fsanitize=thread -mllvm -tsan-distinguish-volatile=1 \
        -mllvm -tsan-instrument-func-entry-exit=0 -mllvm -tsan-instrument-read-before-write=1
done
compile check "$root/common/gpu/check.cpp"
compile programs "$here/programs.cpp"
compile page_runtime "$here/page_runtime.cpp"
for compiler in $(jobs -p); do wait "$compiler"; done
link() {  # FILE [option]
    clang++-19 --target=wasm32-wasi -stdlib=libc++ -mexec-model=reactor -o "$1" "$objects"/*.o \
        -Wl,--export=__stack_pointer,--export=malloc,--gc-sections,-z,stack-size=65536"${2:-}"
}
link "$made" ,--strip-all
chmod 644 "$made"
link "$objects/full.wasm"
code=0x$(llvm-objdump-19 -h "$objects/full.wasm" | awk '$2 == "CODE" { print $4 }')
llvm-objdump-19 -d "$objects/full.wasm" | awk '/^[0-9a-f]+ </ { is_kernel = /ddp::\(anonymous namespace\)::(add|sum)_/ && !/cuda_on_cpu/ }
    is_kernel && $0 ~ /\tcall\t/ { sub(":", "", $1); print "0x" $1 }' >"$objects/calls"
while read -r call; do printf '%#x\n' $((call - code)); done <"$objects/calls" |
    llvm-symbolizer-19 --obj="$objects/full.wasm" | awk -v RS= -F'\n' '{ n = split($NF, place, ":"); print place[n - 1] }' >"$objects/lines"
while read -r call line; do printf '"%d":%d,' "$call" "$line"; done < <(paste "$objects/calls" "$objects/lines") |
    sed 's/\(.*\),/{\1}\n/' >"${made%.wasm}.json"
