// A whole model's layers.
#include "18_sync_batch_norm/sync_batch_norm.hpp"

namespace ddp {

std::size_t sync_batch_norm_arena_bytes(const Module& model, int world_size) {
    std::size_t bytes = 0;
    // At most: every buffer is taken for one of a BatchNorm2d, and has as many numbers as channels.
    for (const NamedTensor& buffer : model.buffers())
        bytes += moments_size(static_cast<int>(buffer.value.size())) * sizeof(float) *
                     static_cast<std::size_t>(world_size + 1) +
                 2 * SharedArena::unit;
    return bytes;
}

std::vector<SyncBatchNorm*> convert_sync_batch_norm(Sequential& model, Communicator& communicator) {
    std::vector<SyncBatchNorm*> converted;
    model.replace_layers([&](std::unique_ptr<Module> layer) -> std::unique_ptr<Module> {
        if (dynamic_cast<BatchNorm2d*>(layer.get()) == nullptr)
            return layer;
        std::unique_ptr<BatchNorm2d> plain(static_cast<BatchNorm2d*>(layer.release()));
        auto made = std::make_unique<SyncBatchNorm>(std::move(plain), communicator);
        converted.push_back(made.get());
        return made;
    });
    return converted;
}

}  // namespace ddp
