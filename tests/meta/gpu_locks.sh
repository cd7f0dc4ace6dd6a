#!/usr/bin/env bash
# On a GPU one test runs at a time: two whose kernels wait would share it in turns of milliseconds. The CUDA build is configured
# here, and not built, to see which tests have the lock.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
if ! command -v nvcc >/dev/null; then
    echo "SKIPPED: the CUDA build is configured by nvcc, and none is here"
    exit
fi
cd "$root" || exit 1
# The runtime that CMake finds first may be a link in a folder of links, as with newer CMakes: NCCL beside the toolkit is found.
toolkit=$(dirname "$(dirname "$(command -v nvcc)")")
ln -s "$toolkit"/lib64/libcudart.so "$scratch"
expect 0 "Kernels: nvcc" cmake --preset cuda -B "$scratch/cuda" -DCMAKE_CUDA_ARCHITECTURES=90 -DDDP_MPI=OFF -DCUDA_CUDART="$scratch/libcudart.so"
[[ ! -e $toolkit/include/nccl.h || $output == *"NCCL: /"* ]] || complain "NCCL beside nvcc is not found: $output"
ctest --test-dir "$scratch/cuda" --show-only=json-v1 >"$scratch/tests.json"
python3 - "$scratch/tests.json" <<'END' || complain "see above"
import json, sys

free, locked, started = [], [], []
for test in json.load(open(sys.argv[1]))["tests"]:
    properties = {each["name"]: each["value"] for each in test.get("properties", [])}
    labels = properties.get("LABELS", [])
    if "gpu" in properties.get("RESOURCE_LOCK", []):
        locked.append(test["name"])
    elif not {"data", "common", "meta", "python"} & set(labels):
        free.append(test["name"])
    if "processes" in labels:
        started.append(test["name"])
print(f"{len(locked)} tests have the lock, and {len(started)} start processes")
if free:
    print("these use the GPU beside others:", *free)
few = len(locked) < 90 or len(started) < 16
if few:
    print("that is too few: are all tests of the book configured?")
sys.exit(bool(free or few))
END
finish
