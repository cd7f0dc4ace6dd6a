#include "09_all_reduce/host_ring.hpp"

#include <stdexcept>

#include "09_all_reduce/launch_collective.cuh"
#include "09_all_reduce/pack.cuh"
#include "09_all_reduce/two_shot.hpp"

namespace ddp {
namespace {

template <class T>
__global__ void add_chunk(ReduceOp op, T* to, const T* theirs, const T* own, std::size_t count,
                          int ranks) {
    add_array(op, to, theirs, own, grid_range(count), ranks);
}

}  // namespace

template <class T>
HostRing<T>::HostRing(Peers& peers, std::size_t most)
    : peers_(peers),
      most_(most),
      rank_(peers.view().rank),
      ranks_(peers.view().world_size),
      received_(peers.allocate<T>(chunk(0, most).size)) {}

// Chunk i, counted round the ring.
template <class T>
Chunk HostRing<T>::chunk(int i, std::size_t count) const {
    return chunk_of(count, static_cast<std::size_t>(ranks_),
                    static_cast<std::size_t>((i + 2 * ranks_) % ranks_), sizeof(T));
}

template <class T>
void HostRing<T>::all_reduce(const T* input, T* output, std::size_t count, ReduceOp op,
                             Stream& stream, const std::string& name,
                             const std::function<void()>& after_step) {
    if (count > most_)
        throw std::invalid_argument("a HostRing for " + std::to_string(most_) +
                                    " elements cannot reduce " + std::to_string(count));
    if (ranks_ == 1)  // no neighbour to talk to
        return two_shot_all_reduce(peers_, input, output, count, op, stream, name);
    const int left = (rank_ + ranks_ - 1) % ranks_, right = (rank_ + 1) % ranks_;
    const int last_sum = ranks_ - 2, last_step = 2 * ranks_ - 3;
    for (int step = 0; step <= last_step; step++) {
        const Chunk sent = chunk(rank_ - 1 - step, count);
        const Chunk received = chunk(rank_ - 2 - step, count);
        has_chunk_.record(stream);  // we have what we send: from outside, or from the step before
        sending_.wait(has_chunk_);
        peers_.send((step == 0 ? input : output) + sent.begin, sent.size, right, sending_, name);
        if (step > last_sum) {
            peers_.receive(output + received.begin, received.size, left, stream, name);
        } else {
            peers_.receive(received_.data(), received.size, left, stream, name);
            launch(stream, grid_for(received.size), add_chunk<T>, op, output + received.begin,
                   received_.data(), input + received.begin, received.size,
                   step == last_sum ? ranks_ : 0);
        }
        after_step();
    }
    has_sent_.record(sending_);  // until then our data must not be overwritten
    stream.wait(has_sent_);
}

#define DDP_HOST_RING(T) template class HostRing<T>;
DDP_FOR_EACH_ELEMENT(DDP_HOST_RING)

}  // namespace ddp
