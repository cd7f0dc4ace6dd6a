#!/usr/bin/env bash
# No program stands still as some did on an H200, although the system takes the core from a rank at times: each program of several
# ranks ends, in strict mode, with a launch queue of that GPU's depth, and one launch in 199 that takes 200 ms. And behind a kernel that
# may wait for other ranks no queue is more than half full, since a cooperative launch that finds it full keeps all others out.
#     late_hosts.sh BIN [PROGRAM...]      BIN is the folder of the programs; without names all of the list of chapters are tried
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
bin=$(cd "$1" && pwd)
depth=1021 programs=("${@:2}")
((${#programs[@]} > 0)) ||
    mapfile -t programs < <(sed -nE '/ (PAGE|PYTHON)/d; s/^ddp_add_chapter\([0-9]*_([a-z0-9_]*).*/\1/p' "$root/chapters/CMakeLists.txt")
cd "$scratch" || exit 1
for program in "${programs[@]}"; do
    "$bin/$program" --help | grep -q -e '--ranks N ' || continue
    expect 0 "" env CUDA_ON_CPU="strict,depth=$depth,hiccup=200" timeout 100 "$bin/$program" --ranks 2 --quick
    held=$(sed -nE "s/^cuda_on_cpu: .* held up to ([0-9]+) of $depth\$/\1/p" <<<"$output")
    echo "$program: ${held:=0} of $depth"
    ((held <= depth / 2)) || complain "$program: a rank is $held of $depth places ahead of a kernel that may wait for another one"
    [[ $program != messages ]] || ((held > 0)) || complain "nothing was counted"
done
finish
