#include "14_overlap/compression.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Rounded first and then divided, as PyTorch does: what is too large for T stays too large.
template <class T>
__global__ void shorten(std::size_t n, const float* from, float divisor, T* to) {
    for (std::size_t i : grid_range(n))
        to[i] = static_cast<T>(static_cast<float>(static_cast<T>(from[i])) / divisor);
}

template <class T>
__global__ void lengthen(std::size_t n, const T* from, float* to) {
    for (std::size_t i : grid_range(n))
        to[i] = static_cast<float>(from[i]);
}

}  // namespace

// One array serves all buckets: on the communication stream they come one after the other.
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

std::size_t compressed_arena_bytes(const Module& model) {
    std::size_t bytes = SharedArena::unit;
    for (const auto& parameter : model.parameters())
        bytes += (parameter->value.bytes() + BucketPlan::alignment) / 2;
    return bytes;
}

}  // namespace ddp
