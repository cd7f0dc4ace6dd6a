#pragma once
// What the kernels of different ranks say to each other, in device memory that all of them can
// reach. (wait.cuh has what they do with it.)
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "common/gpu/gpu.hpp"

namespace ddp {

// More ranks than this cannot share memory.
inline constexpr int most_peers = 64;

// Where a rank has the data of an operation: bytes from the beginning of its arena.
struct BufferOffsets {
    std::uint64_t offset = 0;
    std::uint64_t result = 0;  // where the result goes
};

// What a rank does with its peers, written down before any data moves: whoever waits for it can
// say what it is doing instead.
struct OperationRecord : BufferOffsets {
    std::uint64_t sequence = 0;  // of the rank's operations, from 1
    std::uint64_t count = 0;     // elements
    std::int64_t peer = -1;      // the other rank, of an operation that has one; or the root
    char operation[24] = "";
    char type[16] = "";
    char name[32] = "";  // that the program has given to the data

    // Longer texts are cut.
    void set_operation(const std::string& text) { set(operation, sizeof operation, text); }
    void set_type(const std::string& text) { set(type, sizeof type, text); }
    void set_name(const std::string& text) { set(name, sizeof name, text); }

  private:
    static void set(char* field, std::size_t size, const std::string& text) {
        std::memcpy(field, text.data(), std::min(text.size(), size - 1));
    }
};
static_assert(sizeof(OperationRecord) % sizeof(std::uint64_t) == 0);

// What one rank tells another one: the sender writes it into the receiver's block.
struct Channel {
    std::uint64_t posted = 0;     // how many operations, so far
    std::uint64_t posted_ns = 0;  // when, by the device's clock
    OperationRecord record;       // the last of them
    unsigned int blocks = 0;      // of the receiving kernel, that have acknowledged their share
};

// What a rank tells each other one of an operation of all ranks that it has begun: what they need
// to know, in one cache line. All the rest is in its record, should they disagree.
struct alignas(64) PostedCall : BufferOffsets {
    std::uint64_t number = 0;  // of such operations, from 1; written last
    std::uint64_t call = 0;    // Collective::call
};

// A number that one rank writes and another one polls, alone in its cache line.
struct alignas(64) Flag {
    std::uint64_t value = 0;
};

// Kernels that all ranks run together have at most so many blocks; block b of one rank works with
// block b of another.
inline constexpr int most_blocks = 16;

// For operations of all ranks, as later chapters add them. [r] is written by rank r.
struct CollectiveState {
    // What has been begun last, and before that: number k is in [k % 2].
    OperationRecord records[2];                  // by this rank
    PostedCall posted_calls[most_peers][2];      // by rank r
    Flag ready[most_peers][most_blocks];         // how far rank r has come with what we are to read
    Flag acknowledged[most_peers][most_blocks];  // how far rank r has read what we offer
    std::uint64_t arrival_ns[most_peers] = {};   // --link: when what is ready has arrived
    unsigned int blocks = 0;  // of this rank's kernel that have come to their end
};

// The beginning of each rank's arena. Whoever waits reads its own block, and is written to by its
// peers: memory nearby is read more often than memory far away is written.
struct ControlBlock {
    OperationRecord current;    // what the rank has begun last
    std::uint64_t is_over = 1;  // ... and whether it has ended that
    std::uint64_t gave_up = 0;  // the run has failed: both stay as they are, for who still waits
    std::uint64_t out_port_ns = 0;  // --link: when the rank's own port will be free to send,
    std::uint64_t in_port_ns = 0;   // and to receive
    Channel from[most_peers];       // from[r]: written by rank r
    std::uint64_t acknowledged[most_peers]  // acknowledged[r]: how many of our posts rank r has
                                            // acknowledged; written by
        = {};                               // rank r
    CollectiveState collective_state;
};

enum class Problem : unsigned int { none, being_written, timeout, mismatch };

// How far a peer is with what it has begun last, as far as one can see.
enum class Progress : unsigned int { under_way, over, unknown };

// In pinned memory of the rank's process: the only place where host and kernels both write while
// kernels run.
struct DeviceErrorReport {
    unsigned int stop = 0;            // host: the run has failed, end every wait
    Problem problem = Problem::none;  // kernel: what went wrong first, explained by:
    int peer = -1;                    // the rank that was waited for, or that differs
    OperationRecord mine, theirs;
    Progress their_progress = Progress::over;
};

// The simulated link; no bandwidth means none.
struct DeviceLink {
    double bytes_per_ns = 0;
    std::uint64_t latency_ns = 0;
};

// All that a kernel needs to know of the ranks; passed by value.
struct PeersView {
    int rank = 0;
    int world_size = 1;
    std::uint64_t timeout_ns = 0;  // of every wait; 0: for ever
    DeviceLink link;
    DeviceErrorReport* error_report = nullptr;
    ControlBlock* control[most_peers] = {};  // by rank; null for those of other hosts

    __device__ ControlBlock& own() const { return *control[rank]; }
    // What is at that place of rank `r`'s arena.
    __device__ std::byte* data_of(int r, const BufferOffsets& place) const {
        return reinterpret_cast<std::byte*>(control[r]) + place.offset;
    }
    __device__ std::byte* result_of(int r, const BufferOffsets& place) const {
        return reinterpret_cast<std::byte*>(control[r]) + place.result;
    }
};

// One operation of all ranks, as its kernels get it.
struct Collective {
    PeersView view;
    OperationRecord record;    // this rank's
    std::uint64_t number = 0;  // of such operations, from 1: the same on every rank
    std::uint64_t call = 0;    // a fingerprint of what must be the same on every rank
};

}  // namespace ddp
