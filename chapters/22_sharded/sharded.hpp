#pragma once
// Data parallelism that shards its state. Each of N ranks keeps, for P parameters and Adam:
//
//     stage        parameters       gradients        moments     (Rajbhandari et al., "ZeRO", 2020)
//     0: DDP       P                P                2 P
//     1            P                P                2 P / N
//     2            P                P / N + 2 units  2 P / N
//     3            P / N + 2 units  P / N + 2 units  2 P / N     (Zhao et al., "FSDP", 2023)
//
//     ShardedDataParallel replica(communicator, device, blocks_of(model), 3);
//     Adam optimizer(replica.chunks());           // an ordinary optimizer, on this rank's chunks
//     for each batch:
//         const Variable loss = cross_entropy(replica.forward(tape.constant(images)), labels);
//         replica.backward(loss);
//         optimizer.step();
//         optimizer.zero_gradients();
//         replica.after_step();
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "06_messages/support/kernel_loading.hpp"
#include "06_messages/support/timeline.hpp"
#include "22_sharded/mesh.hpp"
#include "22_sharded/slots.hpp"
#include "22_sharded/support/short_gather.hpp"

namespace ddp {

struct ShardOptions {
    // Stage 3. False: a unit stays whole from its forward to its backward, and is gathered once.
    bool reshard_after_forward = true;
    // Stages 2 and 3. True: gradients stay whole on every rank, and no_sync can add them up.
    bool keep_gradients = false;
    // Stage 3. False: a unit is gathered only when the computing needs it, and waits.
    bool prefetch = true;
    // Stage 3. True: parameters are gathered as bfloat16. The bits then differ from DDP's.
    bool bfloat16 = false;
};

class ShardedDataParallel {
  public:
    // Makes every rank's model a copy of rank 0's, and moves its parameters and gradients into the
    // memory of this stage, 1 to 3; a mesh of several nodes requires 3. A Communicator is a mesh of
    // one node. If the model does not fit, make it on the host first, by a Device of
    // pinned_memory: it comes to `device` unit by unit. All ranks call it together; every
    // argument must outlive this object, which must outlive the model's use.
    ShardedDataParallel(Mesh communicator, Device& device, const Blocks& blocks, int stage,
                        const ShardOptions& options = {});
    ShardedDataParallel(const ShardedDataParallel&) = delete;
    ShardedDataParallel& operator=(const ShardedDataParallel&) = delete;

    // Returns the arena size that a communicator needs at this stage, with `ranks` on each node.
    static std::size_t arena_bytes(const Blocks& blocks, int ranks, int stage,
                                   const ShardOptions& options = {}, int nodes = 1);

    // Returns this rank's chunk of every unit, as a parameter for the optimizer.
    const Parameters& chunks() const { return chunks_; }

    // Returns model.forward(input).
    Variable forward(Variable input) {
        return forward([&] { return model_.forward(input); });
    }
    // Does the same for a model whose input is not one tensor. Stays at most four units ahead of
    // the device, as backward does.
    Variable forward(const std::function<Variable()>& model_forward);
    // Computes the gradients, and leaves the mean of this rank's chunks in chunks(). Enqueues only,
    // but waits for the previous step. Every forward has one backward. At stages 2 and 3 adds to
    // the gradients that the chunks have from a previous batch. Throws std::logic_error at stage 1
    // and in a hybrid: accumulate batches with no_sync there.
    void backward(Variable loss);
    // While this object lives, backward reduces nothing: gradients add up on their rank, and the
    // next backward reduces the sum (set_requires_gradient_sync(False) of fully_shard). Throws
    // std::logic_error at stages 2 and 3 without keep_gradients.
    class NoSync {
      public:
        explicit NoSync(ShardedDataParallel& sharded);
        ~NoSync() { sharded_.is_reducing_ = true; }
        NoSync(const NoSync&) = delete;
        NoSync& operator=(const NoSync&) = delete;

      private:
        ShardedDataParallel& sharded_;
    };
    [[nodiscard]] NoSync no_sync() { return NoSync(*this); }
    // Clips by the norm of all ranks' chunks, between backward and the step. Returns the norm, on
    // the device, with the same bits at every stage. All ranks call it together.
    Tensor clip_grad_norm(double max_norm);
    // Follows the optimizer's step: stages 1 and 2 gather the parameters, stage 3 forgets them.
    void after_step();
    // Does the same for chunks that were changed outside of a step, by a checkpoint for example.
    void gather_changed_chunks();

    // Returns the values of all learned parameters, in the model's order and in full precision.
    // All ranks call it together.
    std::vector<std::vector<float>> whole_parameters();

    struct Held {  // memory, in bytes
        std::size_t parameters = 0, gradients = 0;
    };
    const Held& held() const { return held_; }
    // Returns the bytes that this rank has received, since the beginning.
    std::size_t received_bytes() const { return received_bytes_; }

    // Records each step on these tracks, which must outlive their use; null ends the recording.
    void set_tracks(StreamTrack* compute, StreamTrack* communication) {
        computing_.set(compute);
        communicating_.set(communication);
    }
    Stream& communication_stream() { return communication_; }

  private:
    // The beginning, in placing.cpp:
    Tensor allocate(std::size_t elements, std::size_t& held);
    void place_rest();
    void place(std::size_t unit);
    Tensor own_chunk(std::size_t unit, const Tensor& whole) const;
    // A step:
    Variable end_of_block(Variable output, const std::string& block);
    void need(std::size_t unit);
    void before_forward(std::size_t unit);
    void release(std::size_t unit);
    void before_backward(std::size_t unit);
    void gather(std::size_t unit);
    void reduce(std::size_t unit);
    void wait_for_computing();
    void gather_all();
    void enqueue_gather(std::size_t unit, Stream& stream);
    void count_received(std::size_t unit, std::size_t bytes_each);
    void count_down(const Parameter& parameter);
    void wait_in_first_step();
    void add_ranks(const BasicTensor<double>& number);

    Mesh communicator_;
    Device& device_;
    Module& model_;
    const int stage_;
    const bool prefetches_;
    bool rounds_;  // gathered parameters
    const Units layout_;
    const Slots value_slots_, gradient_slots_;
    Held held_;
    std::vector<Tensor> values_, gradients_;  // whole, by slot
    Parameters chunks_;                       // by unit
    std::optional<ShortGather> short_gather_;
    ArenaBuffer<double> squares_;  // one number, which the ranks add
    Stream communication_{Priority::highest};

    std::vector<std::ptrdiff_t> gathered_;   // by slot: the unit that is there, or -1
    std::vector<int> pending_;               // by unit: gradients that are not final yet
    std::vector<Event> released_, arrived_;  // by slot of values
    std::vector<Event> reduced_;             // by slot of gradients
    Event computed_, stepped_, done_;
    OptionalTrack computing_, communicating_;
    std::array<Event, 4> reached_;  // in turns: units that the compute stream has reached
    std::size_t needed_ = 0;        // units that the host has reached
    FirstPass first_step_;
    bool is_reducing_ = true;
    std::size_t received_bytes_ = 0;
};

}  // namespace ddp
