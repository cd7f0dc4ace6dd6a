// Ring all-reduce: one kernel per rank, which stays for all steps. In each step a rank receives one
// chunk from its left neighbour, by reading the neighbour's arena, and sends it on by posting it to
// its right neighbour. For four ranks, the chunk that each rank sends (step 0) or receives:
//
//                                      rank 0   rank 1   rank 2   rank 3
//     phase 1   step 0  send              3        0        1        2     its own elements
//     phase 2   step 1  add, send         2        3        0        1
//               step 2  add, send         1        2        3        0
//     phase 3   step 3  add, keep, send   0        1        2        3     rank r completes chunk r
//     phase 4   step 4  keep, send        3        0        1        2
//               step 5  keep, send        2        3        0        1
//     phase 5   step 6  keep              1        2        3        0     every rank has all sums
//
// In step s rank r receives chunk r - 1 - s, modulo N. A chunk is cut into slices, each of which is
// sent on as soon as it is there. The phases are those of NCCL's runRing (src/device/all_reduce.h):
// send, recvReduceSend, recvReduceCopySend, recvCopySend, recv.
#include "07_broadcast/transfer.cuh"
#include "09_all_reduce/all_reduce.cuh"
#include "09_all_reduce/all_reduce.hpp"

namespace ddp {
namespace {

// One block's place in the ring. All threads of the block call its functions together; those return
// false if the run fails.
template <class T>
class Ring {
  public:
    __device__ Ring(const Collective& collective, ReduceOp op, std::size_t count,
                    std::size_t slice_bytes)
        : collective_(collective),
          op_(op),
          rank_(collective.view.rank),
          ranks_(collective.view.world_size),
          count_(count),
          left_{collective, (rank_ + ranks_ - 1) % ranks_},
          right_{collective, (rank_ + 1) % ranks_},
          input_(reinterpret_cast<const T*>(collective.view.data_of(rank_, collective.record))),
          output_(reinterpret_cast<T*>(collective.view.result_of(rank_, collective.record))),
          slice_(slice_bytes / sizeof(T)) {
        // Over the simulated link all ports are busy anyway, and each message has its latency.
        if (is_over_link(collective) && slice_ < chunk(0).size)
            slice_ = chunk(0).size;
        slices_ = (chunk(0).size + slice_ - 1) / slice_;
    }

    // Sends this rank's own elements of chunk r - 1: the handshake posts where they lie.
    __device__ bool send() {
        __shared__ bool has_begun;
        if (threadIdx.x == 0)
            has_begun = begin_collective(collective_) && left_.handshake() && right_.handshake();
        __syncthreads();
        return has_begun;
    }
    // Receives a partial sum, adds this rank's elements and sends the result.
    __device__ bool receive_reduce_send(int step) { return pass(step, true, 1, true); }
    // Receives the last partial sum of this rank's chunk, completes it and sends it.
    __device__ bool receive_reduce_copy_send(int step) { return pass(step, true, ranks_, true); }
    // Receives a sum, keeps it and sends it.
    __device__ bool receive_copy_send(int step) { return pass(step, false, 1, true); }
    // Receives the last sum and keeps it.
    __device__ bool receive(int step) { return pass(step, false, 1, false); }

    // Exit barrier: this rank's data may be overwritten once the right neighbour has read it.
    __device__ void end() {
        if (threadIdx.x != 0)
            return;
        raise_acknowledged(collective_, left_.rank, 1);
        if (wait_for_acknowledged(collective_, right_.rank, 1))
            end_block(collective_);
    }

  private:
    // One step: receives all slices of a chunk from the left neighbour's memory, and posts each to
    // the right neighbour.
    __device__ bool pass(int step, bool is_sum, int divide_by, bool sends) {
        for (std::size_t i = 0; i < slices_; i++) {
            const Chunk slice = received(step, i);
            const auto receive = [&](const std::byte* input) {
                const std::byte* theirs = step == 1 ? input : left_.output();
                receive_slice(op_, output_ + slice.begin,
                              reinterpret_cast<const T*>(theirs) + slice.begin,
                              input_ + slice.begin, slice.size, is_sum, divide_by);
            };
            if (!left_.consume(post_number(step - 1, i), slice.size * sizeof(T), receive))
                return false;
            if (threadIdx.x == 0 && sends)
                right_.post(post_number(step, i));
        }
        return true;
    }

    // The number of a post: slices are counted through the steps. 0 is the input itself.
    __device__ std::uint64_t post_number(int step, std::size_t slice) const {
        return step == 0 ? 0 : static_cast<std::uint64_t>(step - 1) * slices_ + slice + 1;
    }
    __device__ Chunk chunk(int i) const {
        return chunk_of(count_, static_cast<std::size_t>(ranks_), static_cast<std::size_t>(i),
                        sizeof(T));
    }
    // Returns the share of this block in slice `i` of the chunk that the rank receives in a step.
    __device__ Chunk received(int step, std::size_t i) const {
        const Chunk all = chunk((rank_ - 1 - step + 2 * ranks_) % ranks_);
        const std::size_t begin = i * slice_ < all.size ? i * slice_ : all.size;
        const std::size_t size = slice_ < all.size - begin ? slice_ : all.size - begin;
        const Slice share = block_share({(all.begin + begin) * sizeof(T), size * sizeof(T)});
        return {share.begin / sizeof(T), share.bytes / sizeof(T)};
    }

    const Collective& collective_;
    const ReduceOp op_;
    const int rank_, ranks_;
    const std::size_t count_;
    Neighbour left_, right_;
    const T* input_;
    T* output_;
    std::size_t slice_, slices_;  // elements of a slice; slices of a chunk
};

template <class T>
__global__ void __launch_bounds__(max_copy_threads)  // threads of a block, at most
    ring_kernel(const __grid_constant__ Collective collective, ReduceOp op, std::size_t count,
                std::size_t slice_bytes) {
    Ring<T> ring(collective, op, count, slice_bytes);
    const int ranks = collective.view.world_size;
    // Phase 1: this rank's own elements go to the right neighbour.
    bool goes_on = ring.send();
    // Phase 2: partial sums grow from rank to rank.
    for (int step = 1; step < ranks - 1; step++)
        goes_on = goes_on && ring.receive_reduce_send(step);
    // Phase 3: this rank completes its chunk.
    goes_on = goes_on && ring.receive_reduce_copy_send(ranks - 1);
    // Phase 4: the complete sums travel around the ring.
    for (int step = ranks; step < 2 * ranks - 2; step++)
        goes_on = goes_on && ring.receive_copy_send(step);
    // Phase 5: the last sum arrives.
    goes_on = goes_on && ring.receive(2 * ranks - 2);
    if (goes_on)
        ring.end();
}

}  // namespace

void ring_all_reduce(Peers& peers, const Call& call, Stream& stream) {
    ring_all_reduce(peers, call, stream, ring_slice_bytes);
}

void ring_all_reduce(Peers& peers, const Call& call, Stream& stream, std::size_t slice_bytes) {
    const auto ranks = static_cast<std::size_t>(peers.view().world_size);
    if (ranks == 1)  // there is no neighbour
        return two_shot_all_reduce(peers, call, stream);
    Call ring = call;
    ring.operation = "ring all_reduce";
    with_type(call.type, [&]<class T>() {
        launch_collective(peers, ring, stream, shape_of_transfer(peers, call.bytes() / ranks),
                          ring_kernel<T>, *call.op, call.count, slice_bytes);
    });
}

}  // namespace ddp
