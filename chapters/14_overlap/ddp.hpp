#pragma once
// DistributedDataParallel: replicas that stay the same, with the all-reduce of one bucket running
// while backward computes the next. (Li et al., "PyTorch Distributed", VLDB 2020;
// torch/nn/parallel/distributed.py and torch/csrc/distributed/c10d/reducer.cpp.)
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

#include "06_messages/support/timeline.hpp"
#include "09_all_reduce/communicator.hpp"
#include "10_data_parallel/replica.hpp"
#include "13_buckets/flat_buffers.hpp"

namespace ddp {

struct DdpOptions {
    std::optional<std::size_t> bucket_cap_bytes;  // not given: 1 MiB and then 25 MiB
    bool overlap = true;                          // or all buckets when backward has ended
    bool check_finite = false;                    // names the gradient that holds NaN or infinity
    // After the first step, in the order of its gradients; or never: where the graph differs from
    // step to step no order is the right one, and the model's holds for good.
    bool rebuild_buckets = true;
};

// Makes the bucket, on `stream`, what it should be on all ranks. It is the same size everywhere,
// and `name` too.
using BucketHook = std::function<void(Communicator& communicator, Tensor bucket, Stream& stream,
                                      const std::string& name)>;
// What DistributedDataParallel does unless it is given another: the mean over the ranks.
void average_bucket(Communicator& communicator, Tensor bucket, Stream& stream,
                    const std::string& name);

// Where later chapters come in. All are called by the rank's own thread, at the same places of a
// step on every rank.
struct DdpHooks {
    // Of every forward, before anything else is sent: will the step be reduced?
    std::function<void(bool is_reduced)> before_forward = {};
    // Of a step that will be reduced; the graph is on the output's tape. Returns the parameters
    // that backward will not reach. They count as ready when it begins, with what no_sync has left
    // them, or zeros.
    std::function<Parameters(Variable output)> after_forward = {};
    // Of every backward, reduced or not: this parameter's gradient is final.
    std::function<void(Parameter& parameter)> after_gradient = {};
    // Backward has ended and has not reached these, which after_forward has not told of. Where this
    // returns they count as those; where it throws, or is not given, they are refused.
    std::function<void(const Parameters& missing)> after_backward = {};
    // All buckets are on their way.
    std::function<void()> before_finalize = {};
};

// What the buckets of the coming steps depend on: a training that goes on elsewhere needs it, since
// a sum's last bits depend on where in a bucket it stands. The same on all ranks.
struct DdpState {
    std::string plan;  // encode_plan's, once the buckets were made anew
    std::vector<std::size_t>
        ready_order;  // until then: of the first reduced step, if there was one

    bool operator==(const DdpState&) const = default;
};

// What make_communicator must be given for a DistributedDataParallel of this model.
std::size_t ddp_arena_bytes(const Module& model);

class DistributedDataParallel {
  public:
    // Makes all ranks' models rank 0's (copy_from_rank_0), and takes the memory of all gradients
    // from the communicator. All ranks make theirs together. Everything passed must live longer.
    DistributedDataParallel(Communicator& communicator, Device& device, Module& model,
                            const DdpOptions& options = {});
    DistributedDataParallel(const DistributedDataParallel&) = delete;
    DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

    // model.forward. The first one in training after a reduced step makes the buckets anew, in the
    // order in which that step's gradients were ready on rank 0. In the first one of all, and in
    // each after a reduced step, the model's buffers become rank 0's.
    Variable forward(Variable input);

    // Tape::backward, and each bucket's reduction as soon as its gradients and all earlier buckets
    // are on their way; what the device's stream is given from then on finds the reduced gradients.
    // Enqueues only. Throws std::runtime_error naming the parameters that the loss does not depend
    // on (the others would wait for them), and std::logic_error for a second backward without a
    // forward. `is_final` is called as Tape::backward's.
    void backward(Variable loss, const Tape::Visitor& is_final = {}, float scale = 1.0f);

    // A step of a rank that has no data left, while others have: takes part in all that they send
    // between before_forward and the end of backward, and adds zeros to their gradients. The means
    // are in the buckets; this rank's own gradients stay absent. Of a step that is not reduced
    // there is no more than the buffers.
    void shadow_step(bool is_reduced = true);

    // The model's buffers become rank 0's now, not in the next forward: before a test, for example.
    // All ranks call it together. Enqueues only.
    void share_buffers();
    // From now on it is this rank's buffers that all get; all ranks must say so together.
    void set_buffers_root(int root) { buffers_root_ = root; }

    // While it lives, forward and backward belong to this rank alone: gradients add up, and nothing
    // is sent. The next reduced step reduces what has come together (PyTorch's no_sync). Both
    // forward and backward must lie within.
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

    // Between two steps. set_state is for a class that has made no step; throws as decode_plan for
    // another model's. Rank 0's counts: give it to all.
    DdpState state() const;
    void set_state(const DdpState& state);

    // For all buckets from now on.
    void set_bucket_hook(BucketHook hook) { hook_ = std::move(hook); }
    void set_hooks(DdpHooks hooks) { hooks_ = std::move(hooks); }
    // As DdpOptions::overlap, from the next step on; the same on all ranks.
    void set_overlap(bool overlap) { options_.overlap = overlap; }
    bool overlaps() const { return options_.overlap; }
    // Where each reduction is written down; nullptr for nowhere.
    void set_track(StreamTrack* track) { track_ = track; }

    const FlatBuffers& gradients() const { return gradients_; }
    Stream& communication_stream() { return communication_; }

  private:
    void begin_step();
    void rebuild_buckets();
    void prepare(const Parameters& unreached);
    void mark_ready(std::size_t gradient);
    void launch_ready_buckets();
    void launch(std::size_t bucket);
    void mark_zero(std::size_t gradient);
    void complete();
    void finalize();

    Communicator& communicator_;
    Device& device_;
    Module& model_;
    DdpOptions options_;
    FlatBuffers gradients_;
    ArenaBuffer<float> buffers_;  // of the model, on their way
    Stream communication_;
    BucketHook hook_ = average_bucket;
    DdpHooks hooks_;
    StreamTrack* track_ = nullptr;

    bool is_reducing_ = true;        // not within no_sync
    bool expects_backward_ = false;  // a forward was made for a reduced backward
    bool buffers_may_differ_ = true;
    int buffers_root_ = 0;
    bool is_rebuilt_ = false;
    std::vector<std::size_t> ready_order_;  // of the first reduced backward
    std::vector<int> pending_;              // gradients of each bucket that are not ready
    std::vector<bool> is_ready_;            // by gradient
    std::vector<std::size_t> unreached_;    // gradients that this step's backward has none for
    std::size_t next_bucket_ = 0;           // to be launched
    Event computed_, reduced_;
};

}  // namespace ddp
