// Stage 3 on three units. Two slots hold the gathered units; unit u is always in slot u mod 2, so
// what the tape remembers of a parameter stays valid: the address does not change.
//
//     compute stream   wait forward 0 | wait forward 1 | forward 2 | backward 2 | backward 1 | ...
//     communication    gather 0 | gather 1 | gather 2  |           | gather 0, reduce 2 | reduce 1
//     slot 0           0 0 0 0 0 0 0 0 0 0 | 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 | 0 0 0 0 0 0 0 0 0
//     slot 1                      1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
//
// A unit that is still in its slot is not gathered again: here units 2 and 1. Every rank enqueues
// the same collectives in the same order, on one stream: no rank waits for another one's next.
#include "22_sharded/sharded.hpp"

#include <algorithm>
#include <stdexcept>

#include "11_data_parallel/replica.hpp"
#include "16_recipe/clip_gradients.hpp"
#include "22_sharded/support/sharded_layer.hpp"

namespace ddp {

// ---- Where things are

// Enough for stage 1, which is the largest, for the chunks, and for the copy from rank 0.
std::size_t ShardedDataParallel::arena_bytes(const Module& model, int ranks) {
    return (1 << 20) + 4 * units_of(model, ranks).total(ranks) * sizeof(float);
}

ShardedDataParallel::ShardedDataParallel(Communicator& communicator, Device& device,
                                         Sequential& model, int stage)
    : communicator_(communicator),
      device_(device),
      model_(model),
      stage_(stage),
      layout_(units_of(model, communicator.world_size())),
      squares_(communicator.allocate<double>(1)),
      gathered_(slots, -1),
      pending_(layout_.units.size(), 0) {
    if (stage < 1 || stage > 3)
        throw std::invalid_argument("there are stages 1, 2 and 3, not " + std::to_string(stage));
    copy_from_rank_0(communicator, device, model);
    const std::size_t units = layout_.units.size();
    const std::size_t largest = layout_.largest(communicator.world_size());
    // Parts have two slots, in which the units take turns; a whole has a place for each unit.
    for (std::size_t i = 0; i < (stage >= 3 ? slots : units); i++)
        values_.push_back(
            allocate(stage >= 3 ? largest : layout_.units[i].padded(communicator.world_size()),
                     held_.parameters));
    for (std::size_t i = 0; i < (stage >= 2 ? slots : units); i++)
        gradients_.push_back(
            allocate(stage >= 2 ? largest : layout_.units[i].padded(communicator.world_size()),
                     held_.gradients));
    for (std::size_t unit = 0; unit < units; unit++)
        place(unit);
    wrap_layers();
    device.stream().synchronize();
}

// Returns zeroed memory that collectives take, and counts it.
Tensor ShardedDataParallel::allocate(std::size_t elements, std::size_t& held) {
    const ArenaBuffer<float> memory = communicator_.allocate<float>(elements);
    Tensor tensor(device_, {static_cast<int>(elements)}, memory.share());
    fill(tensor, 0.0f);
    held += tensor.bytes();
    return tensor;
}

// Returns this rank's chunk of a whole unit.
Tensor ShardedDataParallel::own_chunk(std::size_t unit, const Tensor& whole) const {
    const std::size_t chunk = layout_.units[unit].chunk;
    return whole.view(static_cast<std::size_t>(communicator_.index()) * chunk,
                      {static_cast<int>(chunk)});
}

// Moves a unit's parameters and gradients to their places, and makes the chunk that the optimizer
// changes: a view where the whole is kept, an array of its own where it is not.
void ShardedDataParallel::place(std::size_t u) {
    const Unit& unit = layout_.units[u];
    Tensor& values = values_[u % values_.size()];
    Tensor& gradients = gradients_[u % gradients_.size()];
    fill(values, 0.0f);  // the gaps, and what the slot had before
    for (const auto& parameter : unit.parameters) {
        const auto i = static_cast<std::size_t>(
            std::ranges::find(layout_.plan.gradients, parameter->name, &GradientSize::name) -
            layout_.plan.gradients.begin());
        const std::size_t offset = layout_.plan.places[i].offset;
        const Tensor value = values.view(offset, parameter->value.shape());
        DDP_CHECK(cudaMemcpyAsync(value.data(), parameter->value.data(), value.bytes(),
                                  cudaMemcpyDeviceToDevice, device_.stream()));
        parameter->value = value;
        parameter->place_gradient(gradients.view(offset, value.shape()));
    }
    Tensor chunk = own_chunk(u, values);
    if (stage_ >= 3) {
        const Tensor kept = allocate(unit.chunk, held_.parameters);
        DDP_CHECK(cudaMemcpyAsync(kept.data(), chunk.data(), chunk.bytes(),
                                  cudaMemcpyDeviceToDevice, device_.stream()));
        chunk = kept;
    }
    chunks_.push_back(std::make_shared<Parameter>(unit.name, chunk));
    chunks_.back()->place_gradient(stage_ >= 2 ? allocate(unit.chunk, held_.gradients)
                                               : own_chunk(u, gradients));
}

// Puts a ShardedLayer around each layer that has a unit.
void ShardedDataParallel::wrap_layers() {
    std::size_t next = 0;
    model_.replace_layers([&](std::unique_ptr<Module> layer) -> std::unique_ptr<Module> {
        if (next == layout_.units.size() || layer->name() != layout_.units[next].name)
            return layer;
        return std::make_unique<ShardedLayer>(std::move(layer), *this, next++);
    });
    if (next != layout_.units.size())
        throw std::invalid_argument("the layer '" + layout_.units[next].name +
                                    "' is not in the row of the model, and only those are sharded");
}

// ---- Forward

// Enqueues the gathering of a unit into its slot, unless it is there: behind the last use of the
// unit that was there before.
void ShardedDataParallel::gather(std::size_t u) {
    const std::size_t slot = u % slots;
    if (stage_ < 3 || gathered_[slot] == static_cast<std::ptrdiff_t>(u))
        return;
    wait_in_first_step();
    communication_.wait(released_[slot]);  // the layer that used the slot has computed
    communication_.wait(stepped_);         // the optimizer has changed the chunk
    communicator_.all_gather(chunks_[u]->value.data(), values_[slot].data(), layout_.units[u].chunk,
                             communication_, "gather " + layout_.units[u].name);
    count_received(u);
    arrived_[slot].record(communication_);
    gathered_[slot] = static_cast<std::ptrdiff_t>(u);
    wait_in_first_step();
}

// Makes a layer's parameters be there when the compute stream comes to it.
void ShardedDataParallel::before_forward(std::size_t u) {
    pending_[u] = static_cast<int>(layout_.units[u].parameters.size());
    gather(u);
    device_.stream().wait(arrived_[u % slots]);
    if (u + 1 < layout_.units.size())
        gather(u + 1);  // prefetch: it comes while this unit computes
}

// Marks the place in the compute stream behind which another unit may take the slot. What is in it
// stays until one does.
void ShardedDataParallel::after_forward(std::size_t u) {
    released_[u % slots].record(device_.stream());
}

// ---- Backward

// Walks the tape back. The layers' boxes and the visitor do the rest on the way.
void ShardedDataParallel::backward(Variable loss) {
    done_.synchronize();  // no host runs ahead by more than a step
    loss.tape->backward(loss, [&](Parameter& parameter) { count_down(parameter); });
    if (std::ranges::any_of(pending_, [](int left) { return left > 0; }))
        throw std::runtime_error(
            "backward has ended, and a unit lacks a gradient: the loss must depend on every "
            "parameter");
    // The optimizer comes next on the compute stream: the chunks' sums must be there.
    done_.record(communication_);
    device_.stream().wait(done_);
}

// Comes before the backward of a unit's layer: its parameters must be there, and its slot for
// gradients free.
void ShardedDataParallel::before_backward(std::size_t u) {
    gather(u);
    device_.stream().wait(arrived_[u % slots]);
    if (u > 0)
        gather(u - 1);  // prefetch, in reverse
    if (stage_ >= 2) {
        device_.stream().wait(reduced_[u % slots]);
        fill(gradients_[u % slots], 0.0f);  // the gaps: another unit was here
    }
}

// Counts down the unit of a gradient that is final, and sends it off with the last one.
void ShardedDataParallel::count_down(const Parameter& parameter) {
    const auto unit = std::ranges::find_if(layout_.units, [&](const Unit& each) {
        return std::ranges::any_of(each.parameters,
                                   [&](const auto& own) { return own.get() == &parameter; });
    });
    const auto u = static_cast<std::size_t>(unit - layout_.units.begin());
    if (--pending_[u] == 0)
        reduce(u);
}

// Enqueues the sum of a unit's gradients behind what backward has enqueued so far. This rank gets
// its chunk of it, and nothing else.
void ShardedDataParallel::reduce(std::size_t u) {
    const Unit& unit = layout_.units[u];
    wait_in_first_step();
    released_[u % slots].record(device_.stream());  // the parameters are not needed any more
    computed_.record(device_.stream());
    communication_.wait(computed_);
    communicator_.reduce_scatter(gradients_[u % gradients_.size()].data(),
                                 chunks_[u]->gradient_for_writing().data(), unit.chunk,
                                 ReduceOp::average, communication_, "reduce " + unit.name);
    count_received(u);
    reduced_[u % slots].record(communication_);
    for (const auto& parameter : unit.parameters)
        parameter->clear_gradient();
    wait_in_first_step();
}

// ---- Between backward and the optimizer

// Clips by the norm of the whole gradient, of which no rank has more than its chunks. The gaps are
// 0 and add nothing.
Tensor ShardedDataParallel::clip_grad_norm(double max_norm) {
    return ddp::clip_grad_norm(chunks_, max_norm, false,
                               [this](const BasicTensor<double>& sum) { add_ranks(sum); });
}

// Enqueues the sum of one number over the ranks, in place: 8 bytes, the only ones that clipping
// costs.
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

// ---- After the optimizer

// Each rank has changed its own chunks; the other ranks' chunks are of the step before.
void ShardedDataParallel::after_step() {
    stepped_.record(device_.stream());
    std::ranges::fill(gathered_, -1);  // what is in the slots is of the step before
    if (stage_ < 3)
        gather_all();
    is_first_step_ = false;
}

// Enqueues the gathering of all units, each into its own place, where this rank's chunk is already.
// Nothing hides it: the next forward begins with the first unit, and is behind the last.
void ShardedDataParallel::gather_all() {
    wait_in_first_step();
    for (std::size_t u = 0; u < layout_.units.size(); u++) {
        communicator_.all_gather(chunks_[u]->value.data(), values_[u].data(),
                                 layout_.units[u].chunk, device_.stream(),
                                 "gather " + layout_.units[u].name);
        count_received(u);
    }
    wait_in_first_step();
}

// Reads one unit after the other: at no time the device holds more than the slots.
std::vector<std::vector<float>> ShardedDataParallel::whole_parameters() {
    std::vector<std::vector<float>> values;
    for (std::size_t u = 0; u < layout_.units.size(); u++) {
        gather(u);
        communicator_.synchronize(communication_);
        for (const auto& parameter : layout_.units[u].parameters)
            values.push_back(parameter->value.to_host());
        after_forward(u);
    }
    return values;
}

// Counts a chunk of every other rank: so much a gathering brings, and a reduction as well.
void ShardedDataParallel::count_received(std::size_t u) {
    received_bytes_ += layout_.units[u].chunk * sizeof(float) *
                       static_cast<std::size_t>(communicator_.world_size() - 1);
}

// In the first step a GPU loads kernels, and a rank that loads must not be waited for by a
// collective that already runs: all ranks wait for each other before and after each of them.
void ShardedDataParallel::wait_in_first_step() {
    if (!is_first_step_ || !loads_kernels())
        return;
    device_.stream().synchronize();
    communication_.synchronize();
    communicator_.rank().barrier();
}

}  // namespace ddp
