#!/usr/bin/env bash
# What keeps the CUDA build from failing or hanging on a GPU, and what finds races, is only as good as the test that holds it. Here each
# repair is taken back in a copy of the book, one after the other, and its test must then fail:
#     repairs.sh            all of them
#     repairs.sh NAME...    some of them
# Takes a quarter of an hour of two cores. The names are those of two reviews of the CUDA build: C and A what would certainly have
# failed, L and B what could have hung, S and G what was slow. R is the race detector: what it keeps, and what it takes for an order.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
wanted=("$@")
copy=$scratch/book
mkdir "$copy"
git -C "$root" ls-files -z --cached --others --exclude-standard | (cd "$root" && xargs -0 cp --parents -t "$copy")
cd "$copy" || exit 1
is_wanted() { ((${#wanted[@]} == 0)) || [[ " ${wanted[*]} " == *" $1 "* ]]; }

# red NAME WHAT FILE SED command...: the command must pass, and it must fail when SED has changed FILE.
declare -A green
red() {
    local name=$1 what=$2 file=$3 change=$4 seconds=$SECONDS
    shift 4
    is_wanted "$name" || return 0
    if [[ -z ${green["$*"]:-} ]]; then
        output=$("$@" 2>&1 </dev/null) || { complain "\`$*\` fails with everything in its place: $output" && return; }
        green["$*"]=yes
    fi
    cp -p "$file" "$scratch/kept"
    sed -i -E "$change" "$file"
    if cmp -s "$file" "$scratch/kept"; then
        complain "$name, $what: $file has no such line: $change"
        return
    fi
    if output=$("$@" 2>&1 </dev/null); then
        complain "$name, $what: taken back, and \`$*\` passes"
    elif [[ $output == *"is not built"* ]]; then
        complain "$name, $what: taken back, it does not compile: $output"
    else
        echo "red: $name, $what ($((SECONDS - seconds)) s)"
    fi
    cp "$scratch/kept" "$file"  # with a new time, so that it is compiled again
}

# shellcheck disable=SC2317  # red calls it
# holds TARGET TEST: builds the program of a test, and runs the test.
holds() {
    if [[ ! -f build/CTestTestfile.cmake ]]; then
        cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DDDP_CUDA=OFF -DDDP_MPI=OFF \
            -DDDP_NCCL=OFF -DBUILD_TESTING=ON || { echo "is not built" && return 1; }
    fi
    cmake --build build --parallel "$(nproc)" --target "$1" || { echo "is not built" && return 1; }
    timeout 300 ctest --test-dir build -R "^$2\$" --no-tests=error --output-on-failure
}
# shellcheck disable=SC2317
meta() { timeout 300 bash "tests/meta/$1.sh"; }

# ---- Certain failures

red C1 "cuda_on_cpu keeps \"not ready\" as the last error" common/cuda_on_cpu/src/errors.cpp \
    's/^ *thread_errors.last = cudaErrorNotReady;//' holds test_streams streams
red C1 "a query clears it" common/gpu/stream.hpp 's/^        cudaGetLastError\(\);/        ;/' holds test_streams streams
red C2 "MPS is started for processes that share a GPU" tests/gpu_machine.sh \
    's/nvidia-cuda-mps-control -d/true/' meta gpu_machine
red C6 "CMake takes no nvcc before 12" cmake/gpu.cmake 's/VERSION_LESS 12\)/VERSION_LESS 1)/' meta configure_refusals
red C6 "./book takes none" book 's/BASH_REMATCH\[0\] < 12/BASH_REMATCH[0] < 1/' meta book_modes
red C7 "GPUs are told apart by their address" chapters/06_messages/support/shared_device.cpp \
    's/if \(address != device.address\)/if (false)/' holds test_shared_device shared_device

red A1 "MPS is found at its socket" chapters/06_messages/support/shared_device.cpp 's/SOCK_SEQPACKET/SOCK_STREAM/' \
    holds test_shared_device shared_device
red A3 "variables that keep kernels apart are overwritten" common/gpu/clock.hpp 's/", overwrite\);/", 0);/' \
    holds test_small_gpu small_gpu
red A3 "the number of queues is read" common/gpu/launch.hpp 's/queues == nullptr \? 8 : std::clamp.*/32)};/' \
    holds test_small_gpu small_gpu
red A3 "launches that wait are refused" chapters/06_messages/support/shared_device.cpp \
    's/launches_wait\(\) && /false \&\& /' holds test_small_gpu small_gpu
red A2 "one test uses the GPU at a time" cmake/targets.cmake 's/^  foreach\(test \$\{tests\}\)/  foreach(test "")/' meta gpu_locks
red A2 "MPS runs for tests of processes only" tests/gpu_machine.sh 's/run_tests -L .*/run_tests/' meta gpu_machine
red A4 "a process takes few queues" chapters/05_ranks/world.cpp 's/let_kernels_run_side_by_side\(8\);//' holds test_jobs jobs

# ---- Hangs and hazards

red L1 "a rank does not run far ahead" chapters/06_messages/peers.cpp 's/^ *here.mark.synchronize\(\);/        ;/' holds test_peers peers
red L3 "a copy from pageable memory has arrived" common/gpu/buffer.hpp \
    's/^    check\(cudaStreamSynchronize\(nullptr\).*//' holds test_strict strict
red L4 "a copy to the host begins when its stream is done" chapters/01_sgd/tensor.hpp \
    '/void copy\(void/,/cudaMemcpyAsync/s/device_->stream\(\).synchronize\(where\);//' holds overlap overlap_small_gpu
red L5 "the first step sends when every backward is over" chapters/11_data_parallel/replica.hpp \
    's/!loads_kernels\(\)/true/' holds test_first_backward first_backward
red L6 "kernels that wait leave room for each other" chapters/06_messages/support/copy.cuh \
    's/\(2 \* static_cast<unsigned int>\(ranks\)\)/static_cast<unsigned int>(ranks)/' holds test_small_gpu small_gpu
red L6 "more ranks than a GPU can run are refused" chapters/06_messages/support/shared_device.cpp \
    's/limits.multiprocessors \/ 2 < ranks/false/' holds test_shared_device shared_device
red L7 "a wait ends before a display's driver ends it" chapters/06_messages/support/shared_device.cpp \
    's/ends_kernels != 0 && is_longer/false/' holds test_display display
red L8 "ranks share a device's memory" chapters/11_data_parallel/replica.cpp 's/std::min\(share, usual\)/usual/' holds test_replicas small_memory
red L9 "more streams than queues are refused" chapters/06_messages/peers.cpp 's/^ *require_queues\(rank_.*/        (void)rank_;/' \
    holds test_small_gpu small_gpu
red L10 "strict mode keeps cuBLAS's handles from waiting kernels" common/cuda_on_cpu/src/cublas.cpp \
    's/check_no_kernel_waits\("cublasDestroy".*\) != cudaSuccess/false/' holds test_strict strict
red L11 "a link works within one GPU" chapters/06_messages/support/shared_device.cpp \
    's/has_link && !device.is_only_one/false/' holds test_shared_device shared_device
red L11 "the thread that writes checkpoints is on its rank's device" chapters/19_checkpoint_failover/saver.cpp \
    's/^        cudaSetDevice\(own_device\);/        (void)own_device;/' holds test_resume resume_two_devices
# shellcheck disable=SC2016  # a pattern
red L13 "an old GPU counts as missing" book 's/-n \$oldest && /-z x \&\& /' meta book_modes
red B1 "strict mode plays the loading of kernels" common/cuda_on_cpu/src/cublas.cpp \
    's/check_shape_is_loaded\(multiply, caller\) != cudaSuccess/false/' holds test_strict strict
red B1 "a stage rehearses" chapters/06_messages/show/stage_report.cpp 's/stage->rehearse.*//' holds messages crowded_messages
red B1 "a worker rehearses" chapters/13_async/show/experiment.cpp 's/^        compute\(\);//' holds async crowded_async
red B1 "no buffer travels beside the first forward" chapters/15_overlap/ddp.cpp 's/^    first_buffers_\.wait.*//' \
    holds overlap crowded_overlap_model_cnn
red B1 "each length is rehearsed" chapters/20_transformer/translation_training.cpp 's/^            rehearse\(\);/            ;/' \
    holds transformer crowded_transformer
red B1 "a smaller last batch finds no kernel that waits" chapters/12_sampler/show/epochs.cpp 's/^            settle\(\);/            ;/' \
    holds sampler crowded_sampler
red B2 "the stream that computes has a bound" chapters/15_overlap/ddp.cpp 's/^    reduced_.synchronize\(\);/    ;/' holds test_reducer reducer
red B3 "kernels of all ranks are tried together" chapters/06_messages/peers.cpp 's/^        rehearse\(rank, view_\);/        ;/' \
    holds test_small_gpu small_gpu
red B4 "a kernel whose partner does not run ends" tests/common/runtime/streams_test.cu 's/ && polls < most_polls//' \
    holds test_streams streams

# ---- What strict mode plays of a GPU

runtime=common/cuda_on_cpu/src
red D "a stream stands behind others of its queue" $runtime/launch_queue.cpp 's/handed_over_ \+ 1 < place/false/' holds test_strict strict
red D "a kernel that runs keeps no queue" $runtime/stream.cpp 's/^( *)if \(queue_\)$/\1if (false)/' holds test_strict strict
red D "cudaFree keeps other threads out" $runtime/copy.cpp '/freeing waits/I,$!s/^    wait_inside_driver\(\);/    ;/' holds test_strict strict
red D "a copy from pageable memory waits for its stream" $runtime/copy.cpp 's/^        wait_before_staging.*/        ;/' holds test_strict strict
red D "cuBLAS keeps other threads out" $runtime/cublas.cpp 's/^    wait_inside_driver\(\);/    ;/' holds test_strict strict
red D "a new stream keeps other threads out" $runtime/runtime.cpp 's/^    wait_inside_driver\(Beside.*/    ;/' holds test_strict strict
red D "ordinary blocks hold multiprocessors" $runtime/stream.cpp 's/HeldMultiprocessors::for_some\(most\)/HeldMultiprocessors::for_some(0)/' \
    holds test_strict strict
red D "ordinary blocks run at the same time" $runtime/stream.cpp 's/held.count\(\) > 0 \? held.count\(\) : most/1/' holds test_strict strict
red D "peer access is asked for" $runtime/launch.cpp 's/!has_peer_access\(device, found->device\)/false/' holds test_strict two_devices
red D "ranks ask for it" chapters/06_messages/peers.cpp 's/cudaDeviceEnablePeerAccess\(device, 0\)/cudaSuccess/' \
    holds test_shared_device shared_device
red D "processes share a GPU's multiprocessors" $runtime/tenants.cpp 's/own.multiprocessors \+ others.multiprocessors/own.multiprocessors/' \
    holds test_ipc_owner ipc_owner
red D "processes share a GPU's memory" $runtime/tenants.cpp 's/own.bytes \+ others.bytes \+ bytes/own.bytes + bytes/' holds test_ipc_owner ipc_owner
red D "a GPU is free of a process that has ended" $runtime/tenants.cpp 's/errno == ESRCH/false/' holds test_ipc_owner ipc_owner
red D "kernels can be compiled as by nvcc" common/cuda_on_cpu/include/cuda_on_cpu/kernel_api.hpp 's/fp-contract=fast/fp-contract=off/' \
    holds test_strict strict
red B2 "a time-out says that the host is inside a launch" chapters/06_messages/wait.cuh 's/load_relaxed\(view.host\[r\]->call\)/HostCall::none/' \
    holds test_peers peers
red B3 "plain launches, where cooperative ones exclude each other" common/gpu/launch.hpp 's/^    if \(launches_plainly\(\)\)/    if (false)/' \
    holds test_small_gpu plain_launches
red B1 "a layer's first forward ends before products follow" chapters/18_sync_batch_norm/sync_batch_norm.cu 's/^    first_forward_.wait.*//' \
    holds test_sync_norm sync_norm_first_pass
red B1 "and its first backward" chapters/18_sync_batch_norm/sync_batch_norm.cu 's/^    first_backward_.wait.*//' \
    holds test_sync_norm sync_norm_first_pass

# ---- The race detector

races=common/cuda_on_cpu/races
# blind WHAT FILE SED: with this change a race is not seen, or an order is not.
blind() { red R "$1" "$races/$2" "$3" holds test_races races; }
blind "a barrier is an order" clocks.hpp 's/\(\(bits_ >> 40\) \+ 1\) << 40/((bits_ >> 40) + 0) << 40/'
blind "a warp's barrier is an order" clocks.hpp 's/\(\(bits_ >> 20\) \+ 1\) << 20/((bits_ >> 20) + 0) << 20/'
blind "a thread does not race with itself" shadow.hpp 's/thread != other.thread && \(is_write/(is_write/'
blind "a write races with the read before it" shadow.hpp 's/\(is_write \|\| other.is_write\)/is_write/'
blind "a read races with the write before it" shadow.hpp 's/\(is_write \|\| other.is_write\)/other.is_write/'
blind "an atomic races with what is none" shadow.hpp 's/is_atomic && other.is_atomic/is_atomic || other.is_atomic/'
blind "atomics do not race with each other" shadow.hpp 's/ &&$/ \&\& true;/; /^ *!\(is_atomic && other.is_atomic\);/d'
blind "bytes of a word are told apart" shadow.hpp 's/^        divide\(\);/        ;/'
blind "more than the last read is kept" shadow.hpp 's/^        also\(cell, who\(displaced\)\) = displaced;/        ;/'
blind "what is kept beside the last ones is looked at" shadow.hpp 's/if \(cell.more != 0\)$/if (false)/'
blind "some lanes are not their warp" detector.cpp 's/std::popcount\(mask\) == static_cast<int>\(lanes\)/true/'
blind "some lanes learn of each other" detector.cpp 's/are_all \? thread.known : publish\(thread, number\)/thread.known/'
blind "shared memory is each block's own" detector.cpp 's/return holds\(thread_storage_, address\) \|\|/return/'
blind "a release passes on what came before" detector.hpp 's/releases \? publish\(thread, now.thread\) : thread.fenced/thread.fenced/'
blind "nothing else does" detector.hpp 's/releases \? publish\(thread, now.thread\) : thread.fenced/publish(thread, now.thread)/'
blind "what has been released stays so when a ticket is drawn" detector.hpp 's/^ *left = Known::join\(left, released->second\);/            ;/'
blind "a released warp is one that has met" detector.cpp 's/^ *known->add\(Party::warp.*/        ;/'
blind "pages with the same last bits are told apart" detector.cpp 's/ \|\| used.number != number\)/)/'
blind "each element counts once" detector.cpp 's/^            bits\[i\] = true;/            bits.push_back(true);/'
# seen_in WHAT FILE SED: the same, where the table of common/cuda_on_cpu/README.md has it.
in_table() { red R "$1" "$races/$2" "$3" holds test_mistakes_races mistakes_races; }
in_table "a relaxed load learns nothing" detector.hpp 's/Knowledge& to = acquires \? thread.known : thread.found;/Knowledge\& to = thread.known;/'
in_table "a fence learns what was loaded before" detector.cpp 's/^ *thread.known = Known::join\(thread.known, thread.found\);/    ;/'
in_table "a fence publishes" detector.cpp 's/^ *thread.fenced = publish.*/    ;/'
in_table "what a block has released, all of it has" detector.cpp 's/^ *known->add\(Party::block.*/        ;/'

# ---- Slow

red S6 "ranks of one process sleep" chapters/05_ranks/rank.cpp 's/cudaDeviceScheduleBlockingSync/cudaDeviceScheduleAuto/' \
    holds test_world world
red G "events of spans that were read record the next ones" chapters/06_messages/support/timeline.cpp \
    's/if \(spare_.empty\(\)\)/if (true)/' holds test_stages stages
red G "a training's tokens are copied from pinned memory" chapters/20_transformer/translation_training.cpp \
    's/slots_.to_device\(share\)/to_device(device_, share)/' holds test_translation translation
red G "a slot is not written before its copy is done" chapters/20_transformer/layers/tokens.cu \
    's/^    slot.copied.synchronize\(\);//' holds test_transformer_layers transformer_layers

# ---- What only the compiler for a GPU shows

if command -v nvcc >/dev/null || [[ -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc ]]; then
    # shellcheck disable=SC2317
    sass_check() {
        local said
        said=$(tests/sass_check.sh "$1" 2>&1) && return
        [[ $said == *FAILED:* ]] || echo "is not built"
        echo "$said"
        return 1
    }
    # The main job as nvcc builds it, which shows a played GPU its launches; chapters/gpu.md says what they are to be.
    # shellcheck disable=SC2317
    launches() {
        if [[ ! -f registers ]]; then
            { SASS_REGISTERS=registers tests/sass_check.sh && cmake --preset cuda -B build/launches \
                -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CUDA_ARCHITECTURES=90 -DDDP_MPI=OFF; } || { echo "is not built" && return 1; }
        fi
        cmake --build build/launches --parallel "$(nproc)" --target overlap || { echo "is not built" && return 1; }
        tests/launches/gpu_table.sh build/launches registers
    }
    red S2 "a collective has 32 blocks" chapters/06_messages/control.hpp 's/\? 16 : 32/? 16 : 16/' launches
    red S4 "buckets travel at the highest priority" chapters/15_overlap/ddp.hpp 's/communication_\{Priority::highest\}/communication_/' launches
    red S5 "the mean of a batch is a block's" chapters/03_network/cross_entropy.cu \
        's/rows_for\(1, losses.size\(\)\), mean_loss/{1, 1}, mean_loss/' launches
    red L2 "a kernel's own record is read plainly" chapters/06_messages/wait.cuh \
        's/store\(source\[i\], cuda/store(RecordWord(const_cast<std::uint64_t\&>(source[i])).load(cuda::memory_order_relaxed), cuda/' sass_check messages
    red S3 "a wait polls by relaxed loads" chapters/06_messages/wait.cuh 's/load_relaxed\(flag\) >= value/load_acquire(flag) >= value/' sass_check messages
    red S8 "a thread's sums fit into its registers" chapters/02_kernels/block_reduce.cuh 's/most_threads \/ 4/most_threads \/ 2/' sass_check sums
else
    echo "SKIPPED: L2, S2 to S5 and S8 are seen by nvcc, and none is here"
fi
finish
