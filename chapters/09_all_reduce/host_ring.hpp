#pragma once
// The ring, driven by the host: in each of its 2 (N - 1) steps a message to the right neighbour,
// one from the left, and a kernel that adds. This is how the first all-reduces for deep learning
// were made, and the way to read before ring.cu: there one kernel does all of it.
#include <cstddef>
#include <functional>
#include <string>

#include "02_kernels/reduction.hpp"
#include "06_messages/peers.hpp"
#include "09_all_reduce/all_reduce.hpp"

namespace ddp {

template <class T>
class HostRing {
  public:
    // For up to `most` elements; takes room for one chunk of them in the arena. `peers` must
    // outlive it. All ranks make theirs before one of them begins.
    HostRing(Peers& peers, std::size_t most);

    // Does the same as two_shot_all_reduce, with the same bits. It enqueues its steps on `stream`
    // and on a stream of its own, and the host goes on. Also throws std::invalid_argument for more
    // than `most` elements. `after_step` is called when a step is enqueued, so that it can be
    // shown.
    void all_reduce(
        const T* input, T* output, std::size_t count, ReduceOp op, Stream& stream,
        const std::string& name = "", const std::function<void()>& after_step = [] {});

  private:
    Chunk chunk(int i, std::size_t count) const;

    Peers& peers_;
    const std::size_t most_;
    const int rank_, ranks_;
    ArenaBuffer<T> received_;  // what the left neighbour has summed so far
    Stream sending_;
    Event has_chunk_{EventFor::order}, has_sent_{EventFor::order};
};

}  // namespace ddp
