#pragma once
// The ring, driven by the host: each of its 2 (N - 1) steps is a message to the right neighbour, a
// message from the left one, and a kernel that adds. The first all-reduces for deep learning were
// written like this. Read it before ring.cu, where one kernel does everything.
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
    // Allocates one chunk of `max_elements` elements in the arena. `peers` must outlive it.
    // All ranks construct theirs before any of them begins.
    HostRing(Peers& peers, std::size_t max_elements);

    // Gives the result of two_shot_all_reduce, bit for bit. Enqueues its steps on `stream` and on
    // sending_; the host doesn't wait. Also throws std::invalid_argument for more than
    // `max_elements`. Calls `after_step` whenever a step is enqueued, so that it can be shown.
    void all_reduce(
        const T* input, T* output, std::size_t count, ReduceOp op, Stream& stream,
        const std::string& name = "", const std::function<void()>& after_step = [] {});

  private:
    Chunk chunk(int i, std::size_t count) const;

    Peers& peers_;
    const std::size_t max_elements_;
    const int rank_, ranks_;
    ArenaBuffer<T> received_;  // the left neighbour's partial sum
    Stream sending_;
    Event has_chunk_{EventFor::order}, has_sent_{EventFor::order};
};

}  // namespace ddp
