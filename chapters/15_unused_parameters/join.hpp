#pragma once
// Training on uneven inputs: ranks that have no batch left take part in what the others send, until
// nobody has one. (torch/distributed/algorithms/join.py, and DistributedDataParallel.join.)
//
//     Join join(*communicator, device, model, ddp);
//     DdpHooks points;
//     join.plug_into(points);
//     ddp.set_hooks(points);
//     while (const auto batch = loader.next()) ...        // as many as this rank has
//     join.shadow_others();                               // until all have come here
#include <functional>
#include <optional>
#include <stdexcept>

#include "14_overlap/ddp.hpp"

namespace ddp {

struct JoinOptions {
    // A mean divides by the number of all ranks, also where some have no data: every sample counts
    // as much as before. Otherwise by the number of those that have: every step does.
    bool divide_by_initial_world_size = true;
    // As soon as one rank has no batch left, all throw InputsExhausted in the same step.
    bool throw_on_early_termination = false;
};

class InputsExhausted : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// What a communicator must have for it besides ddp_arena_bytes.
std::size_t join_arena_bytes(int world_size);

class Join {
  public:
    // All must live longer. All ranks make theirs together, with the same options.
    Join(Communicator& communicator, Device& device, Module& model, DistributedDataParallel& ddp,
         const JoinOptions& options = {});

    // Takes before_forward: every forward begins with telling the others that this rank has data,
    // and with hearing who has. That waits for the device.
    void plug_into(DdpHooks& hooks);

    // This rank has no batch left. Takes part in the others' steps until none of them has, either;
    // then all models become that of the rank that was last (the highest, of several), and all
    // ranks may begin another epoch. Parameters and buffers, that is: an optimizer's state is its
    // own. `after_step`, if given, is called after each step that is reduced; this rank's gradients
    // are then the means, so that an optimizer goes on learning here, and keeps its state the same.
    void shadow_others(const std::function<void()>& after_step = {});

    // Who had data in the last step: how many ranks, and the highest of them.
    int active() const { return active_; }
    int last() const { return last_; }

  private:
    enum class Activity : int { nothing, alone, reduced };
    bool announce(Activity mine);
    void require_all_active() const;

    Communicator& communicator_;
    Device& device_;
    Module& model_;
    DistributedDataParallel& ddp_;
    const JoinOptions options_;
    ArenaBuffer<int> mine_, all_;  // what each rank is doing
    PinnedBuffer<int>& host_;      // the same
    int active_, last_;
};

}  // namespace ddp
