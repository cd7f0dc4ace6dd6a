// Stage 3 on three blocks. Two slots hold the gathered blocks; block u is always in slot u mod 2,
// so the addresses of parameters that the tape remembers stay valid.
//
//     compute stream   wait forward 0 | wait forward 1 | forward 2 | backward 2 | backward 1 | ...
//     communication    gather 0 | gather 1 | gather 2  |           | gather 0, reduce 2 | reduce 1
//     slot 0           0 0 0 0 0 0 0 0 0 0 | 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 | 0 0 0 0 0 0 0 0 0
//     slot 1                      1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
//
// A block that is still in its slot is not gathered again: here 2 and 1. The root is gathered
// before all of them, stays in its slot until backward has ended, and is reduced last. Every rank
// enqueues the same collectives in the same order, on one stream.
#include "22_sharded/sharded.hpp"

#include <algorithm>
#include <stdexcept>

namespace ddp {

// ---- Forward

// Gathers the root, if there is one, and the first block. The ends of blocks gather the rest.
Variable ShardedDataParallel::forward(const std::function<Variable()>& model_forward) {
    computing_.begin();
    for (std::size_t u = 0; u < pending_.size(); u++)
        pending_[u] = static_cast<int>(layout_.units[u].parameters.size());
    for (std::size_t u = 0; u <= layout_.first_block && u < pending_.size(); u++)
        before_forward(u);
    return model_forward();
}

// Follows a block's forward: the next block begins here. In backward the block itself begins here,
// so the tape gets a box that changes nothing but asks for the parameters again.
Variable ShardedDataParallel::end_of_block(Variable output, const std::string& block) {
    const auto unit = std::ranges::find(layout_.units, block, &Unit::name);
    if (unit == layout_.units.end())
        return output;  // learns nothing, or is not a block
    const auto u = static_cast<std::size_t>(unit - layout_.units.begin());
    computing_.mark("forward " + block);
    release(u);
    if (u + 1 < layout_.units.size())
        before_forward(u + 1);
    return output.tape->record(
        "end of " + block, output.value(), {output},
        [this, u](const Tensor& gradient, Tape::InputGradients& inputs) {
            before_backward(u);
            const GradientTarget target = inputs.target(0);
            DDP_CHECK(cudaMemcpyAsync(target.tensor.data(), gradient.data(), gradient.bytes(),
                                      cudaMemcpyDeviceToDevice, gradient.device().stream()));
        });
}

// Makes the compute stream wait until a unit is gathered. The host stays at most four units ahead:
// otherwise it could fill the stream's queue while a gather waits. Its next launch would then wait
// inside the driver, and could lock out the host thread whose gather is missing.
void ShardedDataParallel::need(std::size_t u) {
    Event& reached = reached_[needed_++ % reached_.size()];
    reached.synchronize();
    gather(u);
    device_.stream().wait(arrived_[value_slots_.of(u)]);
    reached.record(device_.stream());
}

void ShardedDataParallel::before_forward(std::size_t u) {
    need(u);
    computing_.mark("waiting for " + layout_.units[u].name);
    if (prefetches_ && u + 1 < layout_.units.size())
        gather(u + 1);  // prefetch: it comes while this unit computes
}

// Marks the place in the compute stream after which a different unit may take the slot: the
// parameters have been used. They stay there until it does.
void ShardedDataParallel::release(std::size_t u) {
    released_[value_slots_.of(u)].record(device_.stream());
}

// Enqueues the gathering of a unit into its slot, unless it is there already: after the last use
// of the slot's previous unit.
void ShardedDataParallel::gather(std::size_t u) {
    const std::size_t slot = value_slots_.of(u);
    if (stage_ < 3 || gathered_[slot] == static_cast<std::ptrdiff_t>(u))
        return;
    wait_in_first_step();
    communication_.wait(released_[slot]);  // the block that used the slot has computed
    communication_.wait(stepped_);         // the optimizer has changed the chunk
    if (!prefetches_)
        wait_for_computing();  // the host is ahead, and asks early
    communicating_.begin();
    enqueue_gather(u, communication_);
    communicating_.mark("gather " + layout_.units[u].name);
    arrived_[slot].record(communication_);
    gathered_[slot] = static_cast<std::ptrdiff_t>(u);
    wait_in_first_step();
}

// ---- Backward

// Walks the tape back. On the way, the blocks' boxes gather and the visitor reduces.
void ShardedDataParallel::backward(Variable loss) {
    done_.synchronize();  // a host runs ahead by at most one step
    if (stage_ == 1 && chunks_.front()->has_gradient())
        throw std::logic_error(
            "the chunks still have gradients, and at stage 1 these lie in the slots: zero them "
            "after each step, and accumulate several batches with no_sync");
    loss.tape->backward(loss, [&](Parameter& parameter) { count_down(parameter); });
    if (std::ranges::any_of(pending_, [](int left) { return left > 0; }))
        throw std::runtime_error(
            "backward has ended, and a unit lacks a gradient: the loss must depend on every "
            "parameter");
    // The optimizer comes next on the compute stream: the chunks' sums must be there.
    computing_.mark("backward " + layout_.units[layout_.first_block].name);
    done_.record(communication_);
    device_.stream().wait(done_);
    computing_.mark("waiting for gradients");
}

// Comes before the backward of a block: its parameters must be there, and its slot for gradients
// free.
void ShardedDataParallel::before_backward(std::size_t u) {
    // Names the work that ends here on the stream: that of the block above, or the loss.
    const bool is_last = u + 1 == layout_.units.size();
    computing_.mark("backward " + (is_last ? "loss" : layout_.units[u + 1].name));
    need(u);
    if (prefetches_ && u > 0)
        gather(u - 1);  // prefetch, in reverse
    if (gradient_slots_.is_shared(u)) {
        const std::size_t slot = gradient_slots_.of(u);
        device_.stream().wait(reduced_[slot]);
        fill(gradients_[slot], 0.0f);  // the gaps: a different block was here
    }
    computing_.mark("waiting for " + layout_.units[u].name);
}

// Counts the final gradients of a unit, and reduces the unit after the last one.
void ShardedDataParallel::count_down(const Parameter& parameter) {
    const auto unit = std::ranges::find_if(layout_.units, [&](const Unit& each) {
        return std::ranges::any_of(each.parameters,
                                   [&](const auto& own) { return own.get() == &parameter; });
    });
    const auto u = static_cast<std::size_t>(unit - layout_.units.begin());
    if (--pending_[u] > 0)
        return;
    release(u);
    if (is_reducing_)
        reduce(u);
}

// Enqueues the sum of a unit's gradients after all that backward has enqueued so far. This rank
// gets its own chunk of the sum only.
void ShardedDataParallel::reduce(std::size_t u) {
    const Unit& unit = layout_.units[u];
    wait_in_first_step();
    wait_for_computing();
    communicating_.begin();
    const bool adds = chunks_[u]->has_gradient();  // to the previous batch's
    communicator_.reduce_scatter(gradients_[gradient_slots_.of(u)].data(),
                                 chunks_[u]->gradient_for_writing().data(), unit.chunk, adds,
                                 communication_, "reduce " + unit.name);
    communicating_.mark("reduce " + unit.name);
    count_received(u, sizeof(float));
    reduced_[gradient_slots_.of(u)].record(communication_);
    for (const auto& parameter : unit.parameters)
        parameter->clear_gradient();
    wait_in_first_step();
}

// Makes the communication stream wait for everything that is on the compute stream now.
void ShardedDataParallel::wait_for_computing() {
    computed_.record(device_.stream());
    communication_.wait(computed_);
}

// ---- After the optimizer

// Each rank has updated its own chunks; its copies of the other chunks are a step old.
void ShardedDataParallel::after_step() {
    gather_changed_chunks();
    first_step_.end();
}

void ShardedDataParallel::gather_changed_chunks() {
    computing_.mark("optimizer");
    stepped_.record(device_.stream());
    std::ranges::fill(gathered_, -1);  // the slots are a step old
    if (stage_ < 3)
        gather_all();
}

// Enqueues the gathering of all units, each into its own place, where this rank's chunk is already.
// It is exposed: the next forward begins after the last unit, on the same stream.
void ShardedDataParallel::gather_all() {
    wait_in_first_step();
    for (std::size_t u = 0; u < layout_.units.size(); u++)
        enqueue_gather(u, device_.stream());
    wait_in_first_step();
}

// Enqueues the gathering of a unit's chunks into its slot: as they are, or rounded.
void ShardedDataParallel::enqueue_gather(std::size_t u, Stream& stream) {
    const Unit& unit = layout_.units[u];
    const float* own = chunks_[u]->value.data();
    float* whole = values_[value_slots_.of(u)].data();
    const std::string name = "gather " + unit.name;
    if (rounds_)
        short_gather_->all_gather(communicator_, own, whole, unit.chunk, stream, name);
    else
        communicator_.all_gather(own, whole, unit.chunk, stream, name);
    count_received(u, rounds_ ? sizeof(__nv_bfloat16) : sizeof(float));
}

}  // namespace ddp
