#pragma once
// DistributedDataParallel: every rank has the whole model and learns from its own samples; after
// each backward all ranks hold the mean of their gradients. Gradients travel in buckets, and the
// all-reduce of one bucket runs while backward computes the next. (Li et al., "PyTorch
// Distributed", VLDB 2020; torch/nn/parallel/distributed.py and
// torch/csrc/distributed/c10d/reducer.cpp.)
//
//     DistributedDataParallel replica(communicator, device, model);
//     Sgd optimizer(model.parameters(), 0.1);
//     for each batch:
//         const Variable loss = cross_entropy(replica.forward(tape.constant(images)), labels);
//         replica.backward(loss);
//         optimizer.step();
//         optimizer.zero_gradients();
//         tape.clear();
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "06_messages/support/kernel_loading.hpp"
#include "06_messages/support/timeline.hpp"
#include "09_all_reduce/communicator.hpp"
#include "11_data_parallel/replica.hpp"
#include "14_buckets/flat_buffers.hpp"
#include "15_overlap/anomaly_search.hpp"
#include "15_overlap/support/extensions.hpp"

namespace ddp {

struct DdpOptions {
    std::optional<std::size_t> bucket_cap_bytes = std::nullopt;  // not given: 1 MiB and then 25 MiB
    bool overlap = true;        // false: send all buckets after backward
    bool check_finite = false;  // name the gradient that holds NaN or infinity
    // Plan the buckets again after the first step, by the order in which its gradients became
    // ready. False where the graph differs from step to step: then the model's order is kept.
    bool rebuild_buckets = true;
    // If given: a cap for each bucket, the last for all that follow, from the first step on.
    std::vector<std::size_t> bucket_caps = {};
};

// Reduces the bucket in place, on `stream`: afterwards it holds the same values on every rank. All
// ranks pass a bucket of the same size and the same `name`.
using BucketHook = std::function<void(Communicator& communicator, Tensor bucket, Stream& stream,
                                      const std::string& name)>;
// The default hook: replaces the bucket by its mean over the ranks.
void average_bucket(Communicator& communicator, Tensor bucket, Stream& stream,
                    const std::string& name);

// Returns the arena size, in bytes, that make_communicator needs for a DistributedDataParallel of
// this model.
std::size_t ddp_arena_bytes(const Module& model);

class DistributedDataParallel {
  public:
    // Makes every rank's model a copy of rank 0's (copy_from_rank_0), and allocates the memory of
    // all gradients from the communicator. All ranks call it together. Everything passed must
    // outlive this object. Where the communicator has a Group (PyTorch's process_group), each group
    // trains a model of its own, whose rank 0 is the group's first. This call, and the first step
    // where kernels are loaded, are made by all groups together.
    DistributedDataParallel(Communicator& communicator, Device& device, Module& model,
                            const DdpOptions& options = {});
    DistributedDataParallel(const DistributedDataParallel&) = delete;
    DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

    // Returns model.forward(input). The second call outside of no_sync rebuilds the buckets, in the
    // order in which the first step's gradients became ready on rank 0. The very first call, and
    // each call after one outside of no_sync, replaces the model's buffers by rank 0's. A test
    // needs no backward: make it within no_sync, or on a tape that does not record.
    Variable forward(Variable input) {
        return forward([&] { return model_.forward(input); });
    }
    // Does the same for a model that takes anything but one tensor: calls `model_forward`, and
    // returns its result.
    //     ddp.forward([&] { return model.forward(tape, source, target); })
    Variable forward(const std::function<Variable()>& model_forward);

    // Runs Tape::backward, and launches each bucket's reduction as soon as its gradients are ready
    // and all earlier buckets are launched. Work enqueued on the device's stream afterwards finds
    // the reduced gradients. Enqueues only. `is_final` and `scale` are Tape::backward's. Throws
    // std::runtime_error naming the parameters that the loss does not depend on (other ranks would
    // wait for their gradients), and std::logic_error for a second backward without a forward.
    void backward(Variable loss, const Tape::Visitor& is_final = {}, float scale = 1.0f);

    // Stands in for a whole step on a rank that has no data left while other ranks have: takes part
    // in every exchange between before_forward and the end of backward, and adds zeros to the sums.
    // The means are in the buckets; this rank's own gradients stay absent. In a step that is not
    // reduced only the buffers are exchanged.
    void shadow_step(bool is_reduced = true);

    // Replaces the model's buffers by rank 0's now, not in the next forward: before a test, for
    // example. All ranks call it together. Enqueues only.
    void share_buffers();
    // Makes `root` the rank whose buffers all ranks get from now on. All ranks call it together.
    void set_buffers_root(int root) { buffers_root_ = root; }

    // While this object lives, forward and backward send nothing: gradients add up on their rank,
    // and the next reduced step reduces the sum (PyTorch's no_sync). Forward and backward must both
    // lie within its life.
    class NoSync {
      public:
        explicit NoSync(DistributedDataParallel& ddp) : ddp_(ddp), before_(ddp.is_reducing_) {
            ddp_.is_reducing_ = false;
        }
        ~NoSync() { ddp_.is_reducing_ = before_; }
        NoSync(const NoSync&) = delete;
        NoSync& operator=(const NoSync&) = delete;

      private:
        DistributedDataParallel& ddp_;
        const bool before_;
    };
    [[nodiscard]] NoSync no_sync() { return NoSync(*this); }

    // Returns the state between two steps. set_state is for an object that has taken no step; all
    // ranks pass rank 0's state. It throws as decode_plan does if the state is another model's.
    DdpState state() const;
    void set_state(const DdpState& state);

    // Sets the hook that reduces every bucket from now on, in place of average_bucket.
    void set_bucket_hook(BucketHook hook);
    void set_hooks(DdpHooks hooks) { hooks_ = std::move(hooks); }
    // Sets DdpOptions::overlap from the next step on. All ranks pass the same.
    void set_overlap(bool overlap) { options_.overlap = overlap; }
    bool overlaps() const { return options_.overlap; }
    // Records each reduction on `track`, which must outlive its use; nullptr records nothing.
    void set_track(StreamTrack* track) { track_.set(track); }

    const FlatBuffers& gradients() const { return gradients_; }
    Stream& communication_stream() { return communication_; }

  private:
    void begin_step(bool is_reduced);
    void rebuild_buckets();
    void prepare(const Parameters& unreached);
    void mark_ready(std::size_t gradient);
    void launch_ready_buckets();
    void launch(std::size_t bucket);
    void mark_zero(std::size_t gradient);
    void complete();
    void finalize();
    void wait_for_last_step();

    Communicator& communicator_;
    Device& device_;
    Module& model_;
    DdpOptions options_;
    FlatBuffers gradients_;
    PinnedBuffer<int>& order_;    // on its way to the group
    ArenaBuffer<float> buffers_;  // staging for the model's buffers on their way
    // First in line for free multiprocessors: backward has more blocks than fit, and a bucket that
    // waited for all of them would overlap with nothing.
    Stream communication_{Priority::highest};
    std::optional<AnomalySearch> anomalies_;  // if check_finite
    BucketHook hook_;
    DdpHooks hooks_;
    OptionalTrack track_;

    bool is_reducing_ = true;        // false within no_sync
    bool expects_backward_ = false;  // a forward was made for a reduced backward
    bool buffers_may_differ_ = true;
    int buffers_root_ = 0;
    bool is_rebuilt_ = false;
    std::vector<std::size_t> ready_order_;  // gradients in the first reduced backward
    std::vector<int> pending_;              // by bucket: gradients that are not ready yet
    std::vector<bool> is_ready_;            // by gradient
    std::vector<std::size_t> unreached_;    // gradients that this step's backward will not compute
    std::size_t next_bucket_ = 0;           // the next to be launched
    FirstPass first_buffers_, first_backward_;
    Event computed_, reduced_;
};

}  // namespace ddp
