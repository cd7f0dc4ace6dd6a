#!/usr/bin/env bash
# What nvcc makes of the kernels that matter most, as a witness where there is no GPU: those of sums, messages, collectives and layers, as
# they are optimised for the architectures that the book is built for. A minute of two cores.
#   - No kernel uses local memory: a thread's copy of a parameter, or registers that it had to spill, would lie in device memory.
#   - A block's registers fit a multiprocessor, which has 65,536: 128 a thread where kernels of ranks wait for each other, with 512
#     threads a block; or a cooperative launch would be refused.
#   - Flags and records are accessed at the scope of the system: a narrower one ends at the border of a GPU.
#   - No data of a peer comes through the read-only cache (ld.global.nc), which does not see that the peer has written it.
#   - Where a lesson says that 16 bytes are loaded at a time, they are.
#   - No kernel takes the address of a parameter: atomic accesses, as to records of operations, are for global and shared memory only.
#   - A wait polls by relaxed loads, since each load with acquire empties a cache.
# The checks are tried on wrong examples first.
#     sass_check.sh               all of these kernels
#     sass_check.sh messages ...  those of some groups (sums messages ring nodes two_shot collectives layers training
#                                   transformer)
# SASS_REGISTERS=FILE: also writes to FILE, for each kernel, its name and how many registers it has on an H100 (sm_90).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
wanted=("$@")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
complain() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
}

# ---- The checks. Each prints what is wrong, one line a kernel.

# of_kernels: "kernel stack_bytes spilled_bytes registers" for each kernel of a log of ptxas -v on stdin.
of_kernels() {
    awk '/Compiling entry function/ { split($0, part, "\x27"); kernel = part[2] }
         /bytes stack frame/ { stack = $1; spilled = $5 + $9 }
         /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); print kernel, stack, spilled, substr($0, RSTART + 5, RLENGTH - 5) }'
}
local_memory() { of_kernels | awk '$2 + $3 > 0 { print $1 ": a stack frame of " $2 " bytes, " $3 " bytes spilled" }'; }
beyond_registers() { of_kernels | awk -v most="$1" '$4 > most { print $1 ": " $4 " registers" }'; }
narrow_scopes() { grep -nE '\.(acquire|release|acq_rel|relaxed|sc)\.(gpu|cta|cluster)|\.volatile\.(global|u|b|s)|^\s*(atom|red)\.global\.[a-z]+\.(u|b|s)' || true; }
non_coherent() { grep -nF '.global.nc' || true; }
addresses_of_parameters() { grep -nF 'cvta.param' || true; }
# polls_with_acquire: kernels that sleep and then load with acquire before they branch back, in PTX on stdin.
polls_with_acquire() {
    awk '/^(\.visible )?\.entry/ { kernel = $0 }
        /nanosleep\.u32/ { sleeps = 1; load = "" }
        sleeps && load == "" && match($0, /ld\.(acquire|relaxed)\.sys/) { load = substr($0, RSTART, RLENGTH) }
        sleeps && /[ \t]bra/ { if (load == "ld.acquire.sys") print kernel; sleeps = 0 }'
}
# without_wide_loads NAME...: kernels of these names, in PTX on stdin, that never load 16 bytes at a time.
without_wide_loads() {
    awk -v names="$*" 'BEGIN { count = split(names, name) }
        /^\.visible \.entry|\.entry/ { kernel = ""; for (i in name) if (index($0, name[i])) kernel = $0; if (kernel) seen[kernel] = 0 }
        kernel && /ld\.(global\.)?(v4\.[a-z]32|v2\.[a-z]64)/ { seen[kernel]++ }
        END { for (k in seen) { all++; if (!seen[k]) print k } if (all < count) print "not all of these kernels are there: " names }'
}

# ---- Wrong examples, and right ones

finds() { [[ -n $2 ]] || complain "the check does not find $1"; }
passes() { [[ -z $2 ]] || complain "the check finds something in $1: $2"; }
log="ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    %s bytes stack frame, %s bytes spill stores, 0 bytes spill loads
ptxas info    : Used %s registers, used 1 barriers"
# shellcheck disable=SC2059  # the log is a format
wrong_log() { printf "$log\n" "$@"; }
finds "a stack frame" "$(wrong_log 704 0 72 | local_memory)"
finds "spilled registers" "$(wrong_log 0 8 72 | local_memory)"
passes "a kernel without" "$(wrong_log 0 0 72 | local_memory)"
finds "too many registers" "$(wrong_log 0 0 136 | beyond_registers 128)"
passes "128 registers" "$(wrong_log 0 0 128 | beyond_registers 128)"
finds "a flag at the scope of a GPU" "$(narrow_scopes <<<'	ld.acquire.gpu.b64 	%rd1, [%rd2];')"
finds "a volatile flag" "$(narrow_scopes <<<'	ld.volatile.global.u64 	%rd1, [%rd2];')"
finds "a plain atomic, whose scope is a GPU" "$(narrow_scopes <<<'	atom.global.add.u32 	%r1, [%rd2], 1;')"
passes "a flag at the scope of the system" "$(narrow_scopes <<<'	ld.acquire.sys.b64 	%rd1, [%rd2];')"
finds "a wait that polls with acquire" "$(polls_with_acquire <<<$'.entry k(\n$L1:\n\tnanosleep.u32 %r1;\n\tld.acquire.sys.b64 %rd1, [%rd2];\n\t@%p1 bra $L1;')"
passes "a wait that polls by relaxed loads" "$(polls_with_acquire <<<$'.entry k(\n$L1:\n\tnanosleep.u32 %r1;\n\tld.relaxed.sys.b64 %rd1, [%rd2];\n\t@%p1 bra $L1;\n\tld.acquire.sys.b64 %rd1, [%rd2];')"
finds "a load through the read-only cache" "$(non_coherent <<<'	ld.global.nc.f32 	%f1, [%rd2];')"
finds "the address of a parameter" "$(addresses_of_parameters <<<'	cvta.param.u64 	%rd1, %rd2;')"
passes "a parameter that is read where it lies" "$(addresses_of_parameters <<<'	ld.param.u64 	%rd1, [%rd2+48];')"
finds "a kernel that copies by words" "$(printf '.visible .entry ring(\n\tld.global.u32 %%r1, [%%rd2];\n' | without_wide_loads ring)"
finds "a kernel that is not there" "$(without_wide_loads ring </dev/null)"
passes "a kernel that copies by 16 bytes" "$(printf '.visible .entry ring(\n\tld.global.v4.u32 {\n' | without_wide_loads ring)"

# ---- The kernels

# group NAME "ARCHITECTURE..." MOST_REGISTERS FILE...: what is compiled as one, in the order of the checks.
groups=()
declare -A architectures most files
group() {
    ((${#wanted[@]} == 0)) || [[ " ${wanted[*]} " == *" $1 "* ]] || return 0
    groups+=("$1") architectures[$1]=$2 most[$1]=$3 files[$1]=${*:4}
}
is_wanted() { [[ " ${groups[*]} " == *" $1 "* ]]; }
# translate NAME: NAME.ptx from the files, and a log of ptxas for each architecture.
translate() {
    local name=$1 file architecture
    for file in ${files[$name]}; do printf '#include "%s"\n' "$file"; done >"$scratch/$name.cu"
    nvcc -std=c++20 --expt-relaxed-constexpr --extended-lambda -DDDP_CUDA -I. -Ichapters -arch=compute_75 -ptx \
        "$scratch/$name.cu" -o "$scratch/$name.ptx" || return 1
    for architecture in ${architectures[$name]}; do
        ptxas -v -arch="sm_$architecture" "$scratch/$name.ptx" -o /dev/null \
            2>"$scratch/$name.$architecture.log" || return 1
    done
}
# As many groups at a time as there are cores.
translate_all() {
    local name
    for name in "${groups[@]}"; do
        while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n || exit 1; done
        translate "$name" &
    done
    for _ in "${groups[@]}"; do
        wait -n || (($? == 127)) || exit 1  # 127: there is none left
    done
}
# complain_of WHAT: one complaint for each line of stdin.
complain_of() { while IFS= read -r line; do complain "$1: $line"; done; }
check_registers() {  # NAME
    local architecture log
    for architecture in ${architectures[$1]}; do
        log=$scratch/$1.$architecture.log
        complain_of "$1, sm_$architecture" < <(local_memory <"$log")
        complain_of "$1, sm_$architecture" < <(beyond_registers "${most[$1]}" <"$log")
        kernels=$((kernels + $(of_kernels <"$log" | wc -l)))
    done
    [[ -z ${SASS_REGISTERS:-} ]] || of_kernels <"$scratch/$1.90.log" | awk '{ print $1, $4 }' >>"$SASS_REGISTERS"
}
check_flags() {  # NAME KERNEL...
    local name=$1 ptx=$scratch/$1.ptx word
    shift
    complain_of "$name: not at the scope of the system" < <(narrow_scopes <"$ptx")
    complain_of "$name: through the read-only cache" < <(non_coherent <"$ptx")
    complain_of "$name: the address of a parameter" < <(addresses_of_parameters <"$ptx")
    complain_of "$name: a wait polls with acquire" < <(polls_with_acquire <"$ptx")
    complain_of "$name: no loads of 16 bytes" < <(without_wide_loads "$@" <"$ptx")
    for word in ld.acquire.sys st.release.sys; do
        grep -qF "$word" "$ptx" || complain "$name: no flag has $word"
    done
}

group sums 90 128 02_kernels/block_reduce.cu  # for blocks of 1024 threads there are __launch_bounds__
group messages "75 90" 128 06_messages/send_receive.cu 07_broadcast/broadcast.cu
group ring "75 90" 128 09_all_reduce/ring.cu
group nodes 90 128 10_nodes/{ring_over_nodes,two_level,communicator/pairs_over_nodes}.cu
group two_shot 90 128 09_all_reduce/two_shot.cu  # ten seconds for each architecture
group collectives 90 128 08_reduce/tree_reduce.cu 09_all_reduce/{one_shot,parameter_server,host_ring,libraries/host_staging}.cu 13_async/mailboxes.cu
group layers 90 255 03_network/{linear,cross_entropy,sgd_momentum,layers/adam,layers/fused_sgd,metrics}.cu \
    03_network/layers/{batch_norm2d,conv2d,dimensions,matrix,max_pool2d,without_parameters}.cu \
    18_sync_batch_norm/sync_batch_norm.cu
group training 90 255 01_sgd/{tensor,sgd,operations}.cu 03_network/loader.cu \
    15_overlap/{anomaly_search,compression,power_sgd}.cu 16_recipe/{clip_gradients,dropout,grad_scaler,mixed_precision}.cu \
    17_unused_parameters/join.cu 19_checkpoint_failover/state/mirror.cu
group transformer 90 255 20_transformer/{attention,token_loss}.cu 20_transformer/layers/{embedding,layer_norm,decoding,long_rows,tokens}.cu \
    24_mesh/{tensor_parallel,layers/vocabulary}.cu
translate_all

kernels=0
[[ -z ${SASS_REGISTERS:-} ]] || : >"$SASS_REGISTERS"
for name in "${groups[@]}"; do check_registers "$name"; done
! is_wanted messages || check_flags messages receive_kernel broadcast_kernel
! is_wanted ring || check_flags ring ring_kernel
! is_wanted nodes || check_flags nodes ring_over_nodes two_level_kernel
! is_wanted two_shot || check_flags two_shot reduce_scatter_kernel all_gather_kernel
! is_wanted collectives || check_flags collectives tree_reduce_kernel one_shot_kernel relay_kernel
((failures == 0)) || exit 1
echo "$kernels kernels as compiled for 90, those of messages and the ring also for 75: no local memory, flags at the scope of the system, peers read by 16 bytes"
