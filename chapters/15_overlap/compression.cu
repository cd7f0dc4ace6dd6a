// A bucket on its way, for 4 ranks and Divide::before:
//
//     bucket   float    [ 0.1  0.2  ... ]
//        | shorten: round to T, then divide by 4
//        v
//     sent     T        [ .025 .05  ... ]  -- all-reduce, sum: half of the bytes -->  sent
//                                                                                     |
//     bucket   float    [ mean ...      ]  <-- lengthen ------------------------------+
#include "15_overlap/compression.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Rounds first and divides then, as PyTorch does: a number that is too large for T becomes
// infinite. The division happens in float and is rounded once more.
template <class T>
__global__ void shorten(std::size_t n, const float* from, float divisor, T* to) {
    for (std::size_t i : grid_range(n))
        to[i] = static_cast<T>(static_cast<float>(static_cast<T>(from[i])) / divisor);
}

// Converts back to float: exact, since every T is a float as well.
template <class T>
__global__ void lengthen(std::size_t n, const T* from, float* to) {
    for (std::size_t i : grid_range(n))
        to[i] = static_cast<float>(from[i]);
}

}  // namespace

// One array serves all buckets, because the communication stream reduces them one after the other.
// The shared_ptr keeps it as long as the hook.
template <class T>
BucketHook compressed_average(Communicator& communicator, const FlatBuffers& gradients,
                              Divide divide) {
    const auto memory = std::make_shared<ArenaBuffer<T>>(
        communicator.allocate<T>(gradients.plan().memory_bytes() / sizeof(float)));
    return [memory, divide](Communicator& ranks, Tensor bucket, Stream& stream,
                            const std::string& name) {
        const bool is_before = divide == Divide::before;
        const auto divisor = static_cast<float>(is_before ? ranks.world_size() : 1);
        T* sent = memory->data();
        launch(stream, grid_for(bucket.size()), shorten<T>, bucket.size(), bucket.data(), divisor,
               sent);
        ranks.all_reduce(sent, sent, bucket.size(), is_before ? ReduceOp::sum : ReduceOp::average,
                         stream, name);
        launch(stream, grid_for(bucket.size()), lengthen<T>, bucket.size(), sent, bucket.data());
    };
}

template BucketHook compressed_average<__half>(Communicator&, const FlatBuffers&, Divide);
template BucketHook compressed_average<__nv_bfloat16>(Communicator&, const FlatBuffers&, Divide);

// Counts every gradient in 16 bits, and a gap after each.
std::size_t compressed_arena_bytes(const Module& model) {
    std::size_t bytes = SharedArena::unit;
    for (const auto& parameter : model.parameters())
        bytes += (parameter->value.bytes() + BucketPlan::alignment) / 2;
    return bytes;
}

}  // namespace ddp
