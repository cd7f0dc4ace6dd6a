// The ring, driven by the host: every step is a send, a receive and a kernel that adds. For four
// ranks, the chunk that each rank receives from its left neighbour in each step of the loop:
//
//                      rank 0   rank 1   rank 2   rank 3
//     step 0   add        2        3        0        1
//     step 1   add        1        2        3        0
//     step 2   add        0        1        2        3     rank r has the whole sum of chunk r
//     step 3   copy       3        0        1        2
//     step 4   copy       2        3        0        1
//     step 5   copy       1        2        3        0     every rank has every sum
//
// Rank r first sends chunk r - 1. In every later step it sends the chunk that it has just received.
#include "09_all_reduce/host_ring.hpp"

#include <stdexcept>

#include "09_all_reduce/all_reduce.cuh"

namespace ddp {
namespace {

// to[i] = op(theirs[i], own[i]). `ranks` is 0 until the last sum, where an average divides by it.
template <class T>
__global__ void add_chunk(ReduceOp op, T* to, const T* theirs, const T* own, std::size_t count,
                          int ranks) {
    add_array(op, to, theirs, own, grid_range(count), ranks);
}

}  // namespace

template <class T>
HostRing<T>::HostRing(Peers& peers, std::size_t max_elements)
    : peers_(peers),
      max_elements_(max_elements),
      rank_(peers.view().rank),
      ranks_(peers.view().world_size),
      received_(peers.allocate<T>(chunk(0, max_elements).size)) {}

// Returns chunk i modulo N.
template <class T>
Chunk HostRing<T>::chunk(int i, std::size_t count) const {
    return chunk_of(count, static_cast<std::size_t>(ranks_),
                    static_cast<std::size_t>((i + 2 * ranks_) % ranks_), sizeof(T));
}

template <class T>
void HostRing<T>::all_reduce(const T* input, T* output, std::size_t count, ReduceOp op,
                             Stream& stream, const std::string& name,
                             const std::function<void()>& after_step) {
    if (count > max_elements_)
        throw std::invalid_argument("a HostRing for " + std::to_string(max_elements_) +
                                    " elements cannot reduce " + std::to_string(count));
    if (ranks_ == 1)  // there is no neighbour
        return two_shot_all_reduce(peers_, input, output, count, op, stream, name);
    const int left = (rank_ + ranks_ - 1) % ranks_, right = (rank_ + 1) % ranks_;
    const int last_sum = ranks_ - 2, last_step = 2 * ranks_ - 3;
    for (int step = 0; step <= last_step; step++) {
        const Chunk sent = chunk(rank_ - 1 - step, count);  // modulo N: chunk -1 is the last
        const Chunk received = chunk(rank_ - 2 - step, count);
        has_chunk_.record(stream);  // the chunk to send is complete
        sending_.wait(has_chunk_);
        peers_.send((step == 0 ? input : output) + sent.begin, sent.size, right, sending_, name);
        if (step > last_sum) {
            peers_.receive(output + received.begin, received.size, left, stream, name);
        } else {
            peers_.receive(received_.data(), received.size, left, stream, name);
            launch(stream, grid_for(received.size), add_chunk<T>, op, output + received.begin,
                   received_.data(), input + received.begin, received.size,
                   step == last_sum ? ranks_ : 0);  // an average is divided in the last sum
        }
        after_step();
    }
    // The data must not be overwritten before the right neighbour has received the last chunk.
    has_sent_.record(sending_);
    stream.wait(has_sent_);
}

template class HostRing<float>;
template class HostRing<double>;
template class HostRing<int>;
template class HostRing<__half>;
template class HostRing<__nv_bfloat16>;

}  // namespace ddp
