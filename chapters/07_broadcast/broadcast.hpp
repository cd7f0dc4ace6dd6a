#pragma once
// Broadcast: the root's data, on every rank. Four algorithms with one contract:
//
// Every rank passes its own array of `count` elements, which lies in its arena; the root's is read,
// the others' are written. Each is one kernel per rank, on `stream`; the host goes on. All ranks of
// the world make the same calls with the same count, type, root and name, in the same order.
// Throws std::invalid_argument for a root that does not exist, data that does not lie in the arena,
// or ranks on several nodes.
#include <cstddef>
#include <string>

#include "06_messages/peers.hpp"

namespace ddp {

// Describes a broadcast, for any algorithm.
template <class T>
Call broadcast_call(T* data, std::size_t count, int root, const std::string& name = "") {
    return {.operation = "broadcast",
            .kind = OperationKind::broadcast,
            .type = element_type<T>(),
            .count = count,
            .input = data,
            .output = data,
            .name = name,
            .peer = root};
}

// The root serves one rank after the other.
void linear_broadcast(Peers& peers, const Call& call, Stream& stream);
// The root serves all ranks at once: over a link they take turns, slice by slice.
void all_at_once_broadcast(Peers& peers, const Call& call, Stream& stream);
// Every rank that has the data serves others: log2(N) steps.
void tree_broadcast(Peers& peers, const Call& call, Stream& stream);
// Each rank passes on to the next what it has, slice by slice: `slices` of them, the same number on
// every rank; or default_slices.
void chain_broadcast(Peers& peers, const Call& call, Stream& stream, int slices);
void chain_broadcast(Peers& peers, const Call& call, Stream& stream);

// Returns the number of slices for a chain, by the size alone: a slice is small enough to be still
// in the cache of the rank that reads it next, and large enough for the flags not to matter.
int default_slices(std::size_t bytes);

template <class T>
void linear_broadcast(Peers& peers, T* data, std::size_t count, int root, Stream& stream,
                      const std::string& name = "") {
    linear_broadcast(peers, broadcast_call(data, count, root, name), stream);
}
template <class T>
void all_at_once_broadcast(Peers& peers, T* data, std::size_t count, int root, Stream& stream,
                           const std::string& name = "") {
    all_at_once_broadcast(peers, broadcast_call(data, count, root, name), stream);
}
template <class T>
void tree_broadcast(Peers& peers, T* data, std::size_t count, int root, Stream& stream,
                    const std::string& name = "") {
    tree_broadcast(peers, broadcast_call(data, count, root, name), stream);
}
template <class T>
void chain_broadcast(Peers& peers, T* data, std::size_t count, int root, Stream& stream,
                     const std::string& name = "") {
    chain_broadcast(peers, broadcast_call(data, count, root, name), stream);
}

}  // namespace ddp
