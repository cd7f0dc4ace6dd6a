// Everything around the collectives of a step: clipping, accumulation, and reading the parameters.
// Each rank adds up the squares of its own chunks, and the ranks add these sums:
//
//     rank 0   chunk 0 of every unit   squares 9    ─┐
//     rank 1   chunk 1                 squares 4    ─┼─ all-reduce of 8 bytes: 14, so the norm is
//     rank 2   chunk 2                 squares 1    ─┘  √14 on every rank, and so is the factor
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "16_recipe/clip_gradients.hpp"
#include "22_sharded/sharded.hpp"

namespace ddp {

// Clips by the norm of the whole gradient, though each rank has only its chunks. The gaps are 0
// and add nothing.
Tensor ShardedDataParallel::clip_grad_norm(double max_norm) {
    return ddp::clip_grad_norm(chunks_, max_norm,
                               [this](const BasicTensor<double>& sum) { add_ranks(sum); });
}

// Enqueues the sum of one number over the ranks, in place: clipping sends these 8 bytes only.
void ShardedDataParallel::add_ranks(const BasicTensor<double>& number) {
    const auto copy = [&](double* to, const double* from) {
        DDP_CHECK(
            cudaMemcpyAsync(to, from, sizeof(double), cudaMemcpyDeviceToDevice, device_.stream()));
    };
    wait_in_first_step();
    copy(squares_.data(), number.data());
    communicator_.all_reduce(squares_.data(), squares_.data(), 1, ReduceOp::sum, device_.stream(),
                             "add the squares");
    copy(number.data(), squares_.data());
    wait_in_first_step();
}

ShardedDataParallel::NoSync::NoSync(ShardedDataParallel& sharded) : sharded_(sharded) {
    const Slots& slots = sharded.gradient_slots_;
    for (std::size_t u = 0; u < sharded.layout_.units.size(); u++)
        if (slots.is_shared(u))
            throw std::logic_error(
                "no_sync at stages 2 and 3 needs ShardOptions::keep_gradients: a slot in which "
                "blocks take turns cannot add up");
    sharded.is_reducing_ = false;
}

// Reads one unit after the other, so the device never holds more than the slots. Nothing is rounded
// here, so units gathered before are forgotten, and those gathered here afterwards.
std::vector<std::vector<float>> ShardedDataParallel::whole_parameters() {
    std::vector<std::vector<float>> values(layout_.plan.gradients.size());
    const bool step_rounds = std::exchange(rounds_, false);
    std::ranges::fill(gathered_, -1);
    for (std::size_t u = 0; u < layout_.units.size(); u++) {
        const Unit& unit = layout_.units[u];
        gather(u);
        communicator_.synchronize(communication_);
        for (std::size_t i = 0; i < unit.parameters.size(); i++)
            values[unit.numbers[i]] = unit.parameters[i]->value.to_host();
        release(u);
    }
    rounds_ = step_rounds;
    std::ranges::fill(gathered_, -1);
    return values;
}

// Counts a chunk from every other rank: a gather receives that much, and so does a reduction.
void ShardedDataParallel::count_received(std::size_t u, std::size_t bytes_each) {
    received_bytes_ += layout_.units[u].chunk * bytes_each *
                       static_cast<std::size_t>(communicator_.world_size() - 1);
}

// All ranks meet before and after each collective of the first step (FirstPass).
void ShardedDataParallel::wait_in_first_step() {
    first_step_.meet(communicator_.rank(), device_.stream(), communication_);
}

}  // namespace ddp
