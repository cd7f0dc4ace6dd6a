//     rank 0    batch 1 -- batch 2 -- batch 3 -- batch 4 --- batch 5 --- done? +
//     rank 1    batch 1 -- batch 2 -- batch 3 -- batch 4 --- (shadow) -- done? +- yes: one model
//     rank 2    batch 1 -- batch 2 -- batch 3 -- (shadow) -- (shadow) -- done? +
//
// Every step of a rank, with data or without:
//     1. announce    all-gather one number per rank: nothing, alone (within no_sync), or reduced
//     2. take part   with data: forward and backward; without: the same buckets, filled with zeros
//     3. end         when no rank has data: the model of the last one that had data goes to all
#include "17_unused_parameters/join.hpp"

#include <algorithm>
#include <string>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

__global__ void scale_kernel(std::size_t n, float factor, float* data) {
    for (std::size_t i : grid_range(n))
        data[i] *= factor;
}

}  // namespace

std::size_t join_arena_bytes(int world_size) {
    return 2 * SharedArena::unit + (static_cast<std::size_t>(world_size) + 1) * sizeof(int);
}

Join::Join(Communicator& communicator, Device& device, Module& model, DistributedDataParallel& ddp,
           const JoinOptions& options)
    : communicator_(communicator),
      device_(device),
      model_(model),
      ddp_(ddp),
      options_(options),
      mine_(communicator.allocate<int>(1)),
      all_(communicator.allocate<int>(static_cast<std::size_t>(communicator.world_size()))),
      host_(make_run_scoped<PinnedBuffer<int>>(communicator.rank(), all_.size())),
      active_(communicator.world_size()),
      last_(communicator.world_size() - 1) {
    communicator.rank().barrier();  // no kernel may wait while another rank allocates memory
    if (options_.divide_by_initial_world_size)
        return;
    // average_bucket divides by all ranks: make that the number of ranks with data.
    ddp_.set_bucket_hook([this](Communicator& ranks, Tensor bucket, Stream& stream,
                                const std::string& name) {
        average_bucket(ranks, bucket, stream, name);
        const float factor = static_cast<float>(ranks.world_size()) / static_cast<float>(active_);
        launch(stream, grid_for(bucket.size()), scale_kernel, bucket.size(), factor, bucket.data());
    });
}

void Join::plug_into(DdpHooks& hooks) {
    // A rank with data announces its step, so that the other ranks know which one to shadow.
    hooks.before_forward = [this](bool is_reduced) {
        announce(is_reduced ? Activity::reduced : Activity::alone);
        require_all_active();
    };
}

void Join::shadow_others(const std::function<void()>& after_step) {
    for (;;) {
        // 1. Does any rank have data, and is its step reduced?
        const bool is_reduced = announce(Activity::nothing);
        if (active_ == 0)
            break;
        require_all_active();
        // 2. The same collectives as a step with data, and zeros for its sums.
        ddp_.shadow_step(is_reduced);
        if (!is_reduced || !after_step)
            continue;
        // The means are in the buckets. With FindUnused the map has settled which parameters have
        // one; without it, all do.
        const Parameters& all = ddp_.gradients().parameters();
        if (std::ranges::none_of(all, [](const auto& each) { return each->has_gradient(); }))
            for (const auto& parameter : all)
                parameter->gradient_for_writing();
        after_step();
    }
    // 3. A rank without data may not have moved: all take the model of the last one with data.
    copy_from_rank(last_, communicator_, device_, model_);
    ddp_.set_buffers_root(0);
}

// Gathers the Activity of all ranks, which sets active_ and last_, and waits for it. The highest
// rank with data becomes the root of the buffers. Returns whether the step of the ranks with data
// will be reduced.
bool Join::announce(Activity mine) {
    // One number to the device, one all-gather, all numbers back to the host.
    Stream& stream = ddp_.communication_stream();
    host_[0] = static_cast<int>(mine);
    DDP_CHECK(
        cudaMemcpyAsync(mine_.data(), host_.data(), sizeof(int), cudaMemcpyHostToDevice, stream));
    communicator_.all_gather(mine_.data(), all_.data(), 1, stream, "ranks with data");
    DDP_CHECK(
        cudaMemcpyAsync(host_.data(), all_.data(), host_.bytes(), cudaMemcpyDeviceToHost, stream));
    communicator_.synchronize(stream);
    // Count the ranks with data; the loop leaves the highest of them in last_.
    active_ = 0;
    bool is_reduced = false;
    for (int r = 0; r < communicator_.world_size(); r++) {
        const auto theirs = static_cast<Activity>(host_[static_cast<std::size_t>(r)]);
        if (theirs == Activity::nothing)
            continue;
        active_++;
        last_ = r;
        is_reduced |= theirs == Activity::reduced;
    }
    ddp_.set_buffers_root(last_);
    return is_reduced;
}

// Throws on all ranks alike, since all have gathered the same numbers: so no rank is left waiting.
void Join::require_all_active() const {
    if (!options_.throw_on_early_termination || active_ == communicator_.world_size())
        return;
    std::string exhausted;
    for (int r = 0; r < communicator_.world_size(); r++)
        if (static_cast<Activity>(host_[static_cast<std::size_t>(r)]) == Activity::nothing)
            exhausted += (exhausted.empty() ? "" : ", ") + std::to_string(r);
    throw InputsExhausted("rank " + exhausted + " has no batch left: all ranks end the epoch here");
}

}  // namespace ddp
