#pragma once
// For kernels that work with kernels of other ranks: passing values on by release and acquire, and
// waiting. Every wait has a limit, gives way to other threads, and ends when the run fails.
//
//     kernel of rank 0                      kernel of rank 1
//     writes the data                       wait_until(flag, 1): polls, relaxed: 0, 0, 0, 1
//     store_release(flag, 1) ─────────────▶ load_acquire(flag): now the data is visible, too
//                                           reads the data
//
// There are four waits. Each is made of the one below it, and the last one polls:
//
//     wait_until        for a flag that one peer raises: the usual one
//     wait_for_flag     for a flag that several raise: blame() returns the rank that is late
//     wait_or_blame     for any condition, with blame() as above
//     wait_or_report    for any condition: report(problem) tells the host what has not come
#include <cstdint>
#include <cuda/atomic>

#include "06_messages/support/error_report.hpp"
#include "common/gpu/clock.hpp"

namespace ddp {

// Reads or writes a value that other ranks and the host can see. All that a thread has written
// before a store_release is visible to a thread whose load_acquire returns the value stored.
template <class T>
__device__ T load_acquire(T& value) {
    return cuda::atomic_ref<T, cuda::thread_scope_system>(value).load(cuda::memory_order_acquire);
}
// Reads the value alone, to poll it: what was written before it need not be visible yet.
template <class T>
__device__ T load_relaxed(T& value) {
    return cuda::atomic_ref<T, cuda::thread_scope_system>(value).load(cuda::memory_order_relaxed);
}
template <class T>
__device__ void store_release(T& value, T to) {
    cuda::atomic_ref<T, cuda::thread_scope_system>(value).store(to, cuda::memory_order_release);
}

// Records are copied word by word, with relaxed accesses, because another rank may read one while
// it is written. Such a reader may get half of one record and half of another, which is good enough
// for a message to the user.
using RecordWord = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
inline constexpr std::size_t words_of_record = sizeof(OperationRecord) / sizeof(std::uint64_t);

// Copies this rank's own record, which no other thread writes. It may be a kernel's parameter, so
// it is read plainly: atomic accesses are for global and shared memory (PTX ISA, Memory Consistency
// Model).
__device__ inline void publish_record(OperationRecord& to, const OperationRecord& own) {
    auto* target = reinterpret_cast<std::uint64_t*>(&to);
    const auto* source = reinterpret_cast<const std::uint64_t*>(&own);
    for (std::size_t i = 0; i < words_of_record; i++)
        RecordWord(target[i]).store(source[i], cuda::memory_order_relaxed);
}
// Copies a record that its rank may overwrite meanwhile.
__device__ inline void copy_record(OperationRecord& to, OperationRecord& from) {
    auto* target = reinterpret_cast<std::uint64_t*>(&to);
    auto* source = reinterpret_cast<std::uint64_t*>(&from);
    for (std::size_t i = 0; i < words_of_record; i++)
        RecordWord(target[i]).store(RecordWord(source[i]).load(cuda::memory_order_relaxed),
                                    cuda::memory_order_relaxed);
}

// Begins an operation: one thread of each block calls it, and that of the first block writes the
// operation down, for other ranks to read. Returns false if the run has failed: a peer may still be
// reading data that this operation would overwrite.
__device__ inline bool begin_operation(const PeersView& view, const OperationRecord& record) {
    if (load_acquire(view.own().gave_up) != 0)
        return false;
    if (blockIdx.x == 0) {
        store_release(view.own().is_over, std::uint64_t{0});
        publish_record(view.own().current, record);
    }
    return true;
}
// Writes down that the operation has ended. One thread of the grid calls it.
__device__ inline void end_operation(const PeersView& view) {
    if (load_acquire(view.own().gave_up) == 0)
        store_release(view.own().is_over, std::uint64_t{1});
}

// Returns the progress of the last operation of a rank of this node.
__device__ inline PeerProgress progress_of(ControlBlock& peer) {
    return load_acquire(peer.is_over) != 0 ? PeerProgress::over : PeerProgress::under_way;
}

// Reports a problem with rank number `peer` to the host, which explains it; only the first problem
// of a rank counts. Then all kernels of the rank end their waits, but not before the host can see
// that there is a problem: it may be waiting for one of the other kernels.
__device__ inline void report_problem(const PeersView& view, Problem problem,
                                      const OperationRecord& mine, int peer,
                                      OperationRecord& theirs, PeerProgress their_progress) {
    DeviceErrorReport& error_report = *view.error_report;
    Problem expected = Problem::none;
    cuda::atomic_ref<Problem, cuda::thread_scope_system> state(error_report.problem);
    const bool is_first = state.compare_exchange_strong(
        expected, Problem::being_written, cuda::memory_order_acquire, cuda::memory_order_relaxed);
    store_release(view.own().gave_up, std::uint64_t{1});
    if (!is_first)
        return;
    error_report.peer = peer;
    publish_record(error_report.mine, mine);
    copy_record(error_report.theirs, theirs);
    error_report.their_progress = their_progress;
    for (int r = 0; r < view.world_size; r++)
        if (view.host[r] != nullptr)
            error_report.hosts[r] = {load_relaxed(view.host[r]->enqueued),
                                     load_relaxed(view.host[r]->call)};
    store_release(error_report.problem, problem);
    store_release(error_report.stop, 1u);
}

// Waits until ready(), which polls by load_relaxed: a load with acquire empties the cache of its
// multiprocessor, which the kernels that compute need. Returns false if the run has failed, or if
// more than `limit_ns` have passed (0: no limit); report() tells the host which of the two.
template <class Ready, class Report>
__device__ bool wait_or_report(const PeersView& view, std::uint64_t limit_ns, Ready ready,
                               Report report) {
    // Asking for the time takes longer than a poll. And the host's flag lies in its own memory: on
    // an H100, 64 blocks that read it every 60 us made a product of matrices 30 times slower.
    constexpr unsigned int polls_between_looks = 64;
    constexpr std::uint64_t ns_between_looks_at_host = 1'000'000;
    std::uint64_t begin_ns = 0, seen_host_ns = 0;
    for (unsigned int polls = 1; !ready(); polls++) {
        if (polls % polls_between_looks == 0) {
            if (load_acquire(view.own().gave_up) != 0)  // another kernel has seen it
                return false;
            const std::uint64_t now_ns = device_clock_ns();
            if (begin_ns == 0)
                begin_ns = seen_host_ns = now_ns;
            bool is_stopped = false;
            if (now_ns - seen_host_ns >= ns_between_looks_at_host) {
                seen_host_ns = now_ns;
                is_stopped = load_acquire(view.error_report->stop) != 0;
            }
            if (is_stopped || (limit_ns > 0 && now_ns - begin_ns > limit_ns)) {
                report(is_stopped ? Problem::stopped : Problem::timeout);
                return false;
            }
        }
        __nanosleep(20);
    }
    return true;
}

// Waits until ready() during operation `mine`. A time-out names rank blame() as the one that did
// not come.
template <class Ready, class Blame>
__device__ bool wait_or_blame(const PeersView& view, const OperationRecord& mine, Ready ready,
                              Blame blame) {
    return wait_or_report(view, view.timeout_ns, ready, [&](Problem problem) {
        const int peer = blame();
        ControlBlock& other = *view.control[peer];
        report_problem(view, problem, mine, other.rank, other.current, progress_of(other));
    });
}

// Waits until `flag`, which another rank raises, is at least `value`. All that the other rank has
// written before is then visible: the last load of the flag is one with acquire.
template <class Blame>
__device__ bool wait_for_flag(const PeersView& view, const OperationRecord& mine,
                              std::uint64_t& flag, std::uint64_t value, Blame blame) {
    return wait_or_blame(
               view, mine, [&] { return load_relaxed(flag) >= value; }, blame) &&
           load_acquire(flag) >= value;  // true: flags only grow
}

// Waits until `flag`, which rank `peer` raises, is at least `value`.
__device__ inline bool wait_until(const PeersView& view, const OperationRecord& mine, int peer,
                                  std::uint64_t& flag, std::uint64_t value) {
    return wait_for_flag(view, mine, flag, value, [peer] { return peer; });
}

}  // namespace ddp
