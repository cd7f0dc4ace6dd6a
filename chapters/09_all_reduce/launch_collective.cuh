#pragma once
// Host side of a collective: its call and its launch.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "02_kernels/reduction.hpp"
#include "07_broadcast/topology.hpp"
#include "07_broadcast/transfer.cuh"

// Calls `instantiate` with every element type of the collectives.
#define DDP_FOR_EACH_ELEMENT(instantiate)                                       \
    instantiate(float) instantiate(double) instantiate(int) instantiate(__half) \
        instantiate(__nv_bfloat16)

namespace ddp {

// "all_reduce sum" of `count` T.
template <class T>
CollectiveCall call_of(const std::string& operation, ReduceOp op, std::size_t count,
                       const std::string& name) {
    return {operation + " " + name_of(op), count, type_name<T>(), name};
}

// More elements than memory has bytes are refused as data that is not in the arena, too.
template <class T>
std::size_t bytes_of_array(std::size_t count, std::size_t parts = 1) {
    const std::size_t most = SIZE_MAX / sizeof(T) / parts;
    return std::min(count, most) * sizeof(T) * parts;
}

// Throws std::invalid_argument for data that is not in the arena, or ranks on several hosts.
template <class... Parameters, class... Arguments>
void launch_collective(Peers& peers, const CollectiveCall& call, Stream& stream,
                       const LaunchShape& shape, void (*kernel)(Collective, Parameters...),
                       Arguments&&... arguments) {
    require_reachable(peers, 0, call.operation);
    const Collective collective = peers.next_collective(call, stream);
    launch_cooperative(stream, shape, kernel, collective, std::forward<Arguments>(arguments)...);
    peers.enqueued(stream);
}

}  // namespace ddp
