#pragma once
// The device memory through which the kernels of different ranks inform each other: records, flags
// and the layout of the control block at the beginning of each rank's arena. (wait.cuh has the
// functions that read and write it.)
//
//     arena of rank 1 (device memory of rank 1; all ranks of the node can read and write it)
//     ┌──────────────────────────── ControlBlock ────────────────────────────┬───────────────┐
//     │ current: OperationRecord   from[0]: Channel ... from[r]: Channel ... │ the program's │
//     │ of rank 1's last operation written by rank 0    written by rank r    │ arrays        │
//     └──────────────────────────────────────────────────────────────────────┴───────────────┘
#include <cstdint>

#include "06_messages/call.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

// The largest number of ranks of one node that can share memory.
inline constexpr int max_peers = 64;

// The places of an operation's data: bytes from the beginning of the rank's arena.
struct BufferOffsets {
    std::uint64_t offset = 0;  // of the input
    std::uint64_t result = 0;  // of the output
};

// The call of one rank, written down before any data moves. A rank that times out can report its
// peer's last operation.
struct OperationRecord : Call, BufferOffsets {
    std::uint64_t sequence = 0;     // number of this operation among those of the rank, from 1
    std::uint64_t fingerprint = 0;  // of the call
};
static_assert(sizeof(OperationRecord) % sizeof(std::uint64_t) == 0);

// The post from one rank to another. It lies in the receiver's control block, and the sender writes
// it.
struct Channel {
    std::uint64_t posted = 0;     // number of sends posted so far; written last
    std::uint64_t posted_ns = 0;  // time of the last of them, by the device's clock
    OperationRecord record;       // the last of them
    unsigned int blocks = 0;      // blocks of the receiving kernel that have copied their share
};

// A number that one rank writes and another rank polls, alone in its cache line.
struct alignas(64) Flag {
    std::uint64_t value = 0;
};

// The largest number of blocks of a kernel that works with kernels of other ranks. Block b of one
// rank works with block b of another. More blocks move more bytes (on an H100, 32 reach half the
// rate of a copy, 128 nearly all of it), but backward needs the multiprocessors meanwhile.
inline constexpr int max_blocks = kernels_run_on_cpu ? 16 : 32;

// The beginning of each rank's arena. A rank that waits polls its own block, and its peers write
// there: memory nearby is read more often than memory far away is written.
struct ControlBlock {
    int rank = -1;                  // the rank's number in the job
    OperationRecord current;        // its last operation
    std::uint64_t is_over = 1;      // whether that has ended
    std::uint64_t gave_up = 0;      // 1: the run has failed; `current` stays as it is, for messages
    std::uint64_t out_port_ns = 0;  // --link: when the rank's port will be free to send
    std::uint64_t in_port_ns = 0;   // --link: when it will be free to receive
    std::uint64_t is_here[max_peers] = {};  // of the rehearsal; is_here[r]: written by rank r
    Channel from[max_peers];                // from[r]: written by rank r
    // acknowledged[r]: number of this rank's sends that rank r has received; written by rank r
    std::uint64_t acknowledged[max_peers] = {};
    // Room for the flags of operations that later chapters add; all zero at first. Collectives need
    // two flags for each peer and block, and each flag has a cache line of its own. That makes 8
    // KiB a block; the other 2 KiB are for what a collective keeps besides.
    alignas(64) std::byte room[max_blocks * (10 << 10)] = {};
};

// support/error_report.hpp: how far a rank's host has come, and the first error of its kernels.
struct HostProgress;
struct DeviceErrorReport;

// The simulated link. A bandwidth of 0 means that no link is simulated.
struct DeviceLink {
    double bytes_per_ns = 0;
    std::uint64_t latency_ns = 0;
};

// All that a kernel needs to know of the ranks; passed by value. The ranks that share memory are
// numbered from 0. If all ranks of the job share memory, these are their numbers in the job.
struct PeersView {
    int rank = 0;
    int world_size = 1;
    int ranks_on_device = 1;       // the most that share one of the node's devices
    std::uint64_t timeout_ns = 0;  // limit of every wait; 0: none
    DeviceLink link;
    DeviceErrorReport* error_report = nullptr;
    ControlBlock* control[max_peers] = {};  // by rank
    HostProgress* host[max_peers] = {};     // by rank; null in another process

    __device__ ControlBlock& own() const { return *control[rank]; }
    // Returns the input of rank `r`'s operation in its arena, and the output.
    __device__ std::byte* data_of(int r, const BufferOffsets& offsets) const {
        return reinterpret_cast<std::byte*>(control[r]) + offsets.offset;
    }
    __device__ std::byte* result_of(int r, const BufferOffsets& offsets) const {
        return reinterpret_cast<std::byte*>(control[r]) + offsets.result;
    }
};

}  // namespace ddp
