#!/usr/bin/env bash
# tests/gpu/first_hour.sh without a GPU. What its tables name must be there, in a build that is ready:
#     first_hour.sh BUILD     its targets, programs, options and kernels
# Then its phases run on a machine that only looks as if it had a GPU, where every program is a script of a line.
# shellcheck disable=SC2016  # stubs are scripts
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
build=$(cd "$1" && pwd)
bin=$build/bin

# ---- The tables

cd "$root" || exit 1
tests/gpu/first_hour.sh list >"$scratch/list"
cmake --build "$build" --target help | sed -E 's/^\.\.\. //; s/[: ].*//' | sort -u >"$scratch/targets"
ctest --test-dir "$build" --show-only=json-v1 >"$scratch/tests.json"
python3 - "$scratch/tests.json" >"$scratch/tests" <<'END' || complain "ctest does not list the tests"
import json, sys
for test in json.load(open(sys.argv[1]))["tests"]:
    labels = [each["value"] for each in test.get("properties", []) if each["name"] == "LABELS"]
    print(test["name"], *sum(labels, []))
END
grep -rhoE '^__global__ void [^(]*(\([0-9]+\) )?[a-z_0-9]+\(' chapters --include='*.cu' --include='*.cuh' >"$scratch/kernels"
check_entry() {
    local kind=$1 name=$2 option
    shift 2
    case $kind in
        target) [[ $name == all ]] || grep -qxF "$name" "$scratch/targets" || complain "there is no target $name" ;;
        test)
            grep -qxF "test_$name" "$scratch/targets" || complain "there is no target test_$name"
            ! grep -qE "^$name .*processes" "$scratch/tests" || complain "the test $name starts processes"
            ;;
        kernel) grep -qE "\b$name\($" "$scratch/kernels" || complain "there is no kernel $name" ;;
        run)
            [[ $name != test_* ]] || { check_entry test "${name#test_}" && return; }
            [[ -e $scratch/$name.help ]] || "$bin/$name" --help >"$scratch/$name.help" 2>&1 || complain "$name has no --help"
            for option in "$@"; do
                [[ $option != --* ]] || grep -qE "^ +$option\b" "$scratch/$name.help" || complain "$name has no option $option"
            done
            ;;
    esac
}
while read -ra words; do check_entry "${words[@]}"; done <"$scratch/list"
(($(wc -l <"$scratch/list") > 90)) || complain "the list is short: $(cat "$scratch/list")"

# ---- The phases

mkdir -p "$scratch/book/tests/gpu" "$scratch/book/build/cuda/bin" "$scratch/machine_bin"
cd "$scratch/book" || exit 1
cp "$root/tests/gpu/first_hour.sh" tests/gpu
script=tests/gpu/first_hour.sh
export OUT=out PATH=$scratch/machine_bin:$PATH CUDA_HOME=$scratch/no-cuda
stub() { printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod +x "$1"; }
stub tests/gpu_machine.sh 'echo "$*" >>built; [ "$2" != test_peers ] || { echo "error: no such thing"; exit 1; }'
stub tests/carry_headers.sh 'mkdir -p carry/include; echo carried >carry/include/header.hpp'
for name in nvidia-smi nvcc compute-sanitizer ncu; do stub "$scratch/machine_bin/$name" "echo $name here: \$*"; done

expect_sentence 1 "first_hour.sh takes prepare, probe, build, tests, programs, numbers, sanitizers or list." $script
rm -r build/cuda/bin
expect_sentence 1 "Nothing is built here: call first_hour.sh build first." $script tests
mkdir build/cuda/bin

git init -q . && git add tests
expect 0 "unpack it on the machine with the GPU" $script prepare
[[ $output == *"SKIPPED: no Fashion-MNIST in carry/fashion-mnist"* ]] || complain "missing data is not said: $output"
tar -tzf out/first_hour.tar.gz >"$scratch/packed"
for file in tests/gpu/first_hour.sh carry/include/header.hpp; do
    grep -qxF "$file" "$scratch/packed" || complain "$file is not packed: $(cat "$scratch/packed")"
done

expect 1 "red are" $script build
[[ $output == *"error: no such thing"* ]] || complain "what is wrong with a stage is not said: $output"
[[ $(grep -c -- --build built) == 5 ]] || complain "after a stage that fails, the next is not tried: $(cat built)"
FIRST_HOUR_SECONDS=1 expect 75 "to be continued: call first_hour.sh build again" $script build

sed -n 's/^test /test_/p; s/^run \([^ ]*\).*/\1/p; s/^target \(gpu_probe\)/\1/p' "$scratch/list" | sort -u | while read -r name; do
    stub "build/cuda/bin/$name" "echo \$(basename \$0) \$* >>ran; echo $name ran"
done
stub build/cuda/bin/test_half 'echo half is red; exit 3'
stub build/cuda/bin/gpu_probe 'echo "asked $* with $CUDA_MODULE_LOADING $CUDA_DEVICE_MAX_CONNECTIONS"'
rm build/cuda/bin/test_ipc
expect 1 "test_ipc is not built" $script tests
[[ $output == *"exit 3"*"red are"*test_half* && $output == *"test_resume ran"* ]] || complain "a red test ends the others: $output"
rm -f ran
echo "build/cuda/bin/test_kernels ~[exhaustive]~[.]" >build/cuda/first_hour_tests
expect 1 "red are" $script tests
! grep -q test_kernels ran || complain "what a call before has done is done again"

expect 0 "programs: all passed" $script programs
[[ $output == *"SKIPPED: no Fashion-MNIST in carry/fashion-mnist, which takes: build/cuda/bin/overlap"* ]] ||
    complain "what is left out is not said: $output"
mkdir -p carry/fashion-mnist
expect 0 "programs: all passed" $script programs
grep -q -- '--data carry/fashion-mnist' ran || complain "no program gets the data: $(cat ran)"
expect 0 "numbers: all passed" $script numbers
expect 0 "sanitizers: all passed" $script sanitizers
[[ $output == *"-k regex:^plane_moments"* && $output == *memcheck*"--ranks 1"*memcheck*"--ranks 2"* ]] || complain "not in this order: $output"

# MPS, of which the stub does not listen at all: the kernel's table of sockets is a file of ours.
stub "$scratch/machine_bin/nvidia-cuda-mps-control" \
    'printf "0: 0 0 0 %s 01 7 %s/control\n" "$KIND" "$CUDA_MPS_PIPE_DIRECTORY" >"$PROC_NET_UNIX"'
export PROC_NET_UNIX=$scratch/sockets
KIND=0005 expect 0 "MPS listens at a socket of kind 0005: ok" $script probe
[[ $output == *"with LAZY"*"asked side_by_side streams with  1"* ]] || complain "the probe is not asked in the three ways: $output"
KIND=0001 expect 0 "THE BOOK LOOKS FOR 0005" $script probe
finish
