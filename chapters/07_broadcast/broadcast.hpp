#pragma once
// Broadcast: what one rank has, all have afterwards. Four ways, the same for whoever calls them:
// every rank passes its own array of `count` elements, which lies in its arena; the root's is sent,
// the others' are written. Each is one kernel per rank, on `stream`; the host goes on. All ranks of
// the world call the same with the same count, type, root and name, in the same order.
//
// Throws std::invalid_argument for a root that is not there, data that is not in the arena, or
// ranks on several hosts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "06_messages/peers.hpp"

namespace ddp {

// An array whose elements are only moved.
struct AnyArray {
    void* data;
    std::size_t count, element_bytes;
    std::string type;

    // More elements than memory has bytes are refused as data that is not in the arena.
    std::size_t bytes() const { return std::min(count, SIZE_MAX / element_bytes) * element_bytes; }

    template <class T>
    static AnyArray of(T* data, std::size_t count) {
        return {data, count, sizeof(T), type_name<T>()};
    }
};

// The root serves one rank after the other.
void linear_broadcast(Peers& peers, const AnyArray& array, int root, Stream& stream,
                      const std::string& name);
// The root serves all ranks at once: over a link they take turns, slice by slice.
void all_at_once_broadcast(Peers& peers, const AnyArray& array, int root, Stream& stream,
                           const std::string& name);
// Whoever has the data serves others: log2(N) steps.
void tree_broadcast(Peers& peers, const AnyArray& array, int root, Stream& stream,
                    const std::string& name);
// Each rank passes on to the next what it has, slice by slice: `slices` of them, the same number on
// every rank.
void chain_broadcast(Peers& peers, const AnyArray& array, int root, Stream& stream,
                     const std::string& name, int slices);

// How many slices a chain takes unless it is told, by the size alone: each is small enough to be
// still in the cache of whoever takes it next, and large enough for the flags not to matter.
int default_slices(std::size_t bytes);

template <class T>
void linear_broadcast(Peers& peers, T* data, std::size_t count, int root, Stream& stream,
                      const std::string& name = "") {
    linear_broadcast(peers, AnyArray::of(data, count), root, stream, name);
}
template <class T>
void all_at_once_broadcast(Peers& peers, T* data, std::size_t count, int root, Stream& stream,
                           const std::string& name = "") {
    all_at_once_broadcast(peers, AnyArray::of(data, count), root, stream, name);
}
template <class T>
void tree_broadcast(Peers& peers, T* data, std::size_t count, int root, Stream& stream,
                    const std::string& name = "") {
    tree_broadcast(peers, AnyArray::of(data, count), root, stream, name);
}
template <class T>
void chain_broadcast(Peers& peers, T* data, std::size_t count, int root, Stream& stream,
                     const std::string& name = "") {
    const AnyArray array = AnyArray::of(data, count);
    chain_broadcast(peers, array, root, stream, name, default_slices(array.bytes()));
}

}  // namespace ddp
