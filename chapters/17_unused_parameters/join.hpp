#pragma once
// Training on uneven inputs: a rank that has no batch left takes part in the collectives of the
// others, until no rank has one. (torch/distributed/algorithms/join.py, and
// DistributedDataParallel.join.)
//
//     Join join(*communicator, device, model, ddp);
//     DdpHooks hooks;
//     join.plug_into(hooks);
//     ddp.set_hooks(hooks);
//     while (const auto batch = loader.next()) ...   // as many batches as this rank has
//     join.shadow_others();                          // returns when every rank has called it
#include <functional>
#include <optional>
#include <stdexcept>

#include "15_overlap/ddp.hpp"

namespace ddp {

struct JoinOptions {
    // True if a mean divides by the number of all ranks even where some have no data: then every
    // sample counts as much as before. Otherwise it divides by the number of ranks with data: then
    // every step is as long as before.
    bool divide_by_initial_world_size = true;
    // True if all ranks throw InputsExhausted, in the same step, as soon as one has no batch left.
    bool throw_on_early_termination = false;
};

class InputsExhausted : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Returns the bytes that a communicator must have for a Join, besides ddp_arena_bytes.
std::size_t join_arena_bytes(int world_size);

class Join {
  public:
    // Takes its memory from the communicator. Everything passed must outlive this object. All ranks
    // construct theirs together, with the same options.
    Join(Communicator& communicator, Device& device, Module& model, DistributedDataParallel& ddp,
         const JoinOptions& options = {});

    // Takes before_forward: every forward begins with an all-gather of which ranks have data, and
    // waits for its result.
    void plug_into(DdpHooks& hooks);

    // Takes part in the other ranks' steps until no rank has a batch left. Then parameters and
    // buffers of all models become equal to those of the last rank with data (the highest one, if
    // there were several), and all ranks may begin another epoch. The optimizer's state is not
    // sent: `after_step`, if given, is called after each reduced step, with the means in this
    // rank's gradients, so that its optimizer can go on and keep the same state.
    void shadow_others(const std::function<void()>& after_step = {});

    // Return how many ranks had data in the last step, and the highest of them.
    int active() const { return active_; }
    int last() const { return last_; }

  private:
    // The next action of a rank: no batch left, a step within no_sync, or a reduced step.
    enum class Activity : int { nothing, alone, reduced };
    bool announce(Activity mine);
    void require_all_active() const;

    Communicator& communicator_;
    Device& device_;
    Module& model_;
    DistributedDataParallel& ddp_;
    const JoinOptions options_;
    ArenaBuffer<int> mine_, all_;  // the Activity of this rank, and of all ranks, by rank
    PinnedBuffer<int>& host_;      // the same on the host
    int active_, last_;
};

}  // namespace ddp
