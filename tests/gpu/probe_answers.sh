#!/usr/bin/env bash
# The probe asks cuda_on_cpu, by whose settings the right answers are known.
#     probe_answers.sh PROBE
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/../meta/meta.sh"
probe=$(realpath "$1")
parts="start clock last_error side_by_side new_streams beside_product calls full_queue pageable copies streams bandwidth polling"

# says QUESTION ANSWER: there is such a line.
says() { grep -qE "^[a-z_]* +$1 +$2" <<<"$output" || complain "no line says '$1 ... $2': $output"; }

expect_sentence 2 "error: 'caps' is no part of the probe; it has ${parts// /, }." "$probe" start caps
unset CUDA_ON_CPU
expect 0 "CPU (CUDA on a CPU)" "$probe"
lacks FAILED
for part in $parts; do grep -q "^($part: " <<<"$output" || complain "the part $part was not asked"; done
says "cudaStreamQuery leaves behind" "not ready: a query must clear it"
says "cooperative launches of 16 ranks, . blocks each" "ok"
says "4 ranks, nothing was enqueued before" "ok"
says "2 kernels of . blocks, highest priority" "met after"
says "first product of 1024 x 64 x 784" "ok"
says "cudaFree" "WAITS FOR THE KERNEL"
says "kernels and an event: A stands still after 1020" "ok"
says "copies of 4 bytes" "ok"
says "to the host, behind 31 copies that wait" "ok"
says "40 that wait, and one that they wait for" "ok"

export CUDA_ON_CPU=strict,multiprocessors=20
expect 0 "20 multiprocessors" "$probe" start side_by_side calls
says "cooperative launches of 32 ranks, 1 blocks each" "NOT AT THE SAME TIME"
says "product of a shape that was computed" "ok"
says "first product of 1024 x 64 x 784" "REFUSED: .*whose kernel must be loaded"
says "cudaMallocHost, 4 MiB" "REFUSED"
says "cublasCreate, a second handle" "REFUSED: .*allocates device memory"
lacks "this error was never read"
DDP_KEEP_CUDA_VARIABLES=1 CUDA_MODULE_LOADING=LAZY expect 0 "" "$probe" calls
says "first launch of a kernel" "REFUSED: .*its first launch"
CUDA_ON_CPU=strict expect 0 "" "$probe" full_queue pageable
says "kernels: A stands still after 1020" "B WAS KEPT OUT"
says "copies of 4 bytes" "A's COPY KEPT B OUT"

# A crowded GPU: what other settings play.
CUDA_ON_CPU=strict,queues=8 expect 0 "" "$probe" side_by_side streams
says "7 that wait, and one that they wait for" "ok"
says "8 that wait, and one that they wait for" "IT STOOD BEHIND ONE OF THEM"
says "cooperative launches of 16 ranks, . blocks each" "ok"
CUDA_ON_CPU=strict,multiprocessors=20,crowded expect 0 "" "$probe" side_by_side beside_product
says "plain launches of 4 ranks, 2 blocks each" "ok"
says "2 kernels of 2 blocks, highest priority" "met after"
finish
