#pragma once
// All-reduce: the sum over all ranks, on every rank. Six algorithms share one contract; the sixth,
// HostRing, keeps memory between its calls (host_ring.hpp).
//
// `output` on every rank becomes the sum (or average, maximum, minimum) of all ranks' `input`, of
// `count` elements each. Both lie in the ranks' arenas; they may be the same array, and must not
// overlap otherwise. T is float, double, int, __half or __nv_bfloat16. Every partial sum is a T; an
// average divides the whole sum. All ranks end with the same bits. Enqueued on `stream`; the host
// doesn't wait. `name` is for messages. Throws std::invalid_argument for data outside the arena, or
// ranks on several nodes.
//
// The data is cut into one chunk per rank. The sum of chunk c follows the ring: it begins with the
// elements of rank c + 1, goes on with rank c + 2, and ends with rank c, modulo N. Ring, two-shot,
// one-shot and host ring keep to this order, so they give the same bits. The parameter server adds
// by rank, reduce + broadcast along its tree.
#include <cuda_runtime.h>

#include <cstddef>
#include <limits>
#include <string>

#include "06_messages/peers.hpp"
#include "07_broadcast/collective.hpp"
#include "09_all_reduce/cost.hpp"

namespace ddp {

// A range of elements.
struct Chunk {
    std::size_t begin = 0, size = 0;
};

// Cuts `count` elements into `chunks`, and returns chunk `i`. All chunks have the same size, a
// multiple of 128 bytes, except the last ones, which may be shorter or empty.
__host__ __device__ inline Chunk chunk_of(std::size_t count, std::size_t chunks, std::size_t i,
                                          std::size_t element_bytes) {
    const std::size_t unit = 128 / element_bytes;
    const std::size_t size = ((count + chunks - 1) / chunks + unit - 1) / unit * unit;
    const std::size_t begin = i * size < count ? i * size : count;
    return {begin, begin + size < count ? size : count - begin};
}

// Describes a collective that sums.
template <class T>
Call reduction_call(const std::string& operation, const T* input, T* output, std::size_t count,
                    ReduceOp op, const std::string& name) {
    return {.operation = operation,
            .type = element_type<T>(),
            .count = count,
            .input = input,
            .output = output,
            .name = name,
            .op = op};
}

// Sums by a parameter server: rank 0 receives all arrays, adds them up and sends the sum to every
// rank. All of that passes one rank's port: 2 (N - 1) times the data.
void parameter_server_all_reduce(Peers& peers, const Call& call, Stream& stream);
// Reduces to rank 0 up a tree, then broadcasts from there down a tree: 2 log2(N) steps, each with
// all of the data.
void reduce_broadcast_all_reduce(Peers& peers, const Call& call, Stream& stream);
// Sums by a ring: each rank reads from its left neighbour only, in 2 (N - 1) steps of one chunk. A
// rank receives 2 (N - 1) / N of the data, however many ranks there are. (Patarasuk and Yuan,
// "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.)
void ring_all_reduce(Peers& peers, const Call& call, Stream& stream);
// Sums by the ring in slices of this size, a multiple of 128 bytes and equal on every rank.
void ring_all_reduce(Peers& peers, const Call& call, Stream& stream, std::size_t slice_bytes);
// The usual size of a slice: small enough to be still in the cache of the rank that reads it next,
// and large enough for the flags not to matter.
inline constexpr std::size_t ring_slice_bytes = kernels_run_on_cpu ? 64 << 10 : 1 << 20;

// Sums in two shots: every rank reads one chunk from all ranks, adds it up, and writes the sum to
// all ranks. As many bytes as the ring, but only two handshakes.
void two_shot_all_reduce(Peers& peers, const Call& call, Stream& stream);
// Sums short arrays in one shot: every rank reads the data of all ranks, and adds it up itself.
// N - 1 times the data, but only one handshake. `input` and `output` may be any device memory.
// Throws std::invalid_argument for more than Collectives::max_staged bytes.
void one_shot_all_reduce(Peers& peers, const Call& call, Stream& stream);

// ---- The list of all algorithms

// Names an all-reduce for the programs that compare, explore, measure or test them. A new algorithm
// is a file, a declaration above, a line here, and a row in the README's table of files.
struct ListedAllReduce {
    const char* name;
    void (*run)(Peers& peers, const Call& call, Stream& stream);  // null: HostRing keeps memory
    PredictedSeconds predicted_seconds;
    bool keeps_ring_order = false;  // so its sums have the ring's bits
    std::size_t max_bytes = std::numeric_limits<std::size_t>::max();  // per call
};
inline constexpr ListedAllReduce all_reduces[] = {
    {"server", parameter_server_all_reduce, parameter_server_seconds},
    {"reduce+broadcast", reduce_broadcast_all_reduce, reduce_broadcast_seconds},
    {"host ring", nullptr, ring_seconds, true},
    {"ring", ring_all_reduce, ring_seconds, true},
    {"two-shot", two_shot_all_reduce, two_shot_seconds, true},
    {"one-shot", one_shot_all_reduce, one_shot_seconds, true, Collectives::max_staged},
};

// ---- At what size, and in two halves

// The largest size at which the Communicator prefers one-shot to two-shot, but for two ranks on a
// CPU (communicator.cpp). On an H200 that 2, 3 or 4 ranks shared, one-shot was faster to 16 KiB.
inline constexpr std::size_t one_shot_bytes = kernels_run_on_cpu ? 2 << 10 : 16 << 10;

// The two halves of two-shot, as operations of their own.
//
// `input` has `count` elements for each rank, by rank; `output` becomes the sum of this rank's
// elements, in the order of the ring. `output` may be their place in `input`.
void reduce_scatter(Peers& peers, const Call& call, Stream& stream);
// `output` becomes every rank's `input`, of `count` elements, by rank. `input` may be this rank's
// place in `output`.
void all_gather(Peers& peers, const Call& call, Stream& stream);

// ---- The same with typed arguments

template <class T>
void two_shot_all_reduce(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op,
                         Stream& stream, const std::string& name = "") {
    two_shot_all_reduce(peers, reduction_call("all_reduce", input, output, count, op, name),
                        stream);
}
template <class T>
void one_shot_all_reduce(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op,
                         Stream& stream, const std::string& name = "") {
    one_shot_all_reduce(peers, reduction_call("all_reduce", input, output, count, op, name),
                        stream);
}
template <class T>
void reduce_scatter(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op,
                    Stream& stream, const std::string& name = "") {
    Call call = reduction_call("reduce_scatter", input, output, count, op, name);
    call.inputs = static_cast<std::size_t>(peers.view().world_size);
    reduce_scatter(peers, call, stream);
}
template <class T>
void all_gather(Peers& peers, const T* input, T* output, std::size_t count, Stream& stream,
                const std::string& name = "") {
    all_gather(peers,
               Call{.operation = "all_gather",
                    .type = element_type<T>(),
                    .count = count,
                    .input = input,
                    .output = output,
                    .outputs = static_cast<std::size_t>(peers.view().world_size),
                    .name = name},
               stream);
}

}  // namespace ddp
