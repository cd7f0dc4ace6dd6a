// The beginning of a training: from the whole model to this rank's part of it, here at stage 3, on
// rank 0 of two.
//
//     the model      | table norm | layer0.weight .bias | layer1.weight .bias |    on the host
//                          |  copied into its slot, unit by unit, and broadcast from rank 0
//                          v
//     slots          | root       | block 0, then block 1 |    where the tensors are now
//                          |  this rank's half
//                          v
//     chunks         | ro | bl | bl |                          what the optimizer takes
//
// At stages 1 and 2 each unit has a slot of its own, and a chunk is a part of the slot.
#include <algorithm>
#include <stdexcept>

#include "22_sharded/sharded.hpp"

namespace ddp {

namespace {

// Do blocks take turns in the slots of values, and in those of gradients?
bool has_turns_of_values(int stage, const ShardOptions& options) {
    return stage >= 3 && options.reshard_after_forward;
}
bool has_turns_of_gradients(int stage, const ShardOptions& options) {
    return stage >= 2 && !options.keep_gradients;
}

}  // namespace

// Adds up what the constructor allocates. The copy of the rest is over before the slots are made.
std::size_t ShardedDataParallel::arena_bytes(const Blocks& blocks, int ranks, int stage,
                                             const ShardOptions& options, int nodes) {
    const auto room = [](std::size_t elements) {  // of an array in the arena
        constexpr std::size_t unit = SharedArena::unit;
        return (elements * sizeof(float) + unit - 1) / unit * unit;
    };
    const Units layout = units_of(blocks, ranks, nodes);
    std::size_t bytes = 0;
    for (const Slots& slots : {Slots(layout, ranks, has_turns_of_values(stage, options)),
                               Slots(layout, ranks, has_turns_of_gradients(stage, options))})
        for (const std::size_t elements : slots.sizes())
            bytes += room(elements);
    for (const Unit& unit : layout.units)
        bytes += ((stage >= 2) + (stage >= 3)) * room(unit.chunk);
    if (stage >= 3 && options.bfloat16)
        bytes += ShortGather::arena_bytes(layout, ranks);
    return SharedArena::unit + std::max(bytes, room(Rest(blocks.model).elements()));
}

ShardedDataParallel::ShardedDataParallel(Mesh communicator, Device& device, const Blocks& blocks,
                                         int stage, const ShardOptions& options)
    : communicator_(std::move(communicator)),
      device_(device),
      model_(blocks.model),
      stage_(stage),
      prefetches_(options.prefetch),
      rounds_(options.bfloat16),
      layout_(units_of(blocks, communicator_.world_size(), communicator_.nodes())),
      value_slots_(layout_, communicator_.world_size(), has_turns_of_values(stage, options)),
      gradient_slots_(layout_, communicator_.world_size(), has_turns_of_gradients(stage, options)),
      squares_(communicator_.allocate<double>(1)),
      gathered_(value_slots_.sizes().size(), -1),
      pending_(layout_.units.size(), 0),
      released_(value_slots_.sizes().size()),
      arrived_(value_slots_.sizes().size()),
      reduced_(gradient_slots_.sizes().size()) {
    if (stage < 1 || stage > 3)
        throw std::invalid_argument("there are stages 1, 2 and 3, not " + std::to_string(stage));
    if (stage < 3 && communicator_.nodes() > 1)
        throw std::invalid_argument("a model that is replicated between nodes takes stage 3");
    if (stage < 3 && options.bfloat16)
        throw std::invalid_argument(
            "only stage 3 gathers in bfloat16: at stages 1 and 2 a rank computes with its chunk");
    // The rest comes first: the memory of its copy then becomes that of the slots.
    require_same_model(communicator_.rank(), model_);
    place_rest();
    for (const std::size_t elements : value_slots_.sizes())
        values_.push_back(allocate(elements, held_.parameters));
    for (const std::size_t elements : gradient_slots_.sizes())
        gradients_.push_back(allocate(elements, held_.gradients));
    if (options.bfloat16) {
        short_gather_.emplace(communicator_, layout_, device.stream());
        held_.parameters += ShortGather::bytes(layout_, communicator_.world_size());
    }
    communicator_.load_kernels(device.stream());
    for (std::size_t unit = 0; unit < layout_.units.size(); unit++)
        place(unit);
    blocks.observe(
        [this](Variable output, const std::string& block) { return end_of_block(output, block); });
    device.stream().synchronize();
    communicator_.rank().barrier();  // nobody allocates while a broadcast of another rank runs
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

// Brings what is not learned to the device as a whole.
void ShardedDataParallel::place_rest() {
    const Rest rest(model_);
    for (const auto& parameter : rest.parameters())
        parameter->value = Tensor(device_, parameter->value.shape(), parameter->value.to_host());
    communicator_.copy_from_rank_0(device_, rest);
}

// Moves a unit's parameters and gradients to their slots, and makes the chunk that the optimizer
// changes: a view where the whole is kept, an array of its own where it is not.
void ShardedDataParallel::place(std::size_t u) {
    const Unit& unit = layout_.units[u];
    Tensor& values = values_[value_slots_.of(u)];
    Tensor& gradients = gradients_[gradient_slots_.of(u)];
    fill(values, 0.0f);  // the gaps, and what the slot had before
    for (std::size_t i = 0; i < unit.parameters.size(); i++) {
        Parameter& parameter = *unit.parameters[i];
        const std::size_t offset = layout_.plan.places[unit.numbers[i]].offset;
        const Tensor value = values.view(offset, parameter.value.shape());
        Tensor(value).copy_from(parameter.value.to_host());  // by the host, wherever it was
        parameter.value = value;
        parameter.place_gradient(gradients.view(offset, value.shape()));
    }
    // Ranks may have drawn other numbers: all take rank 0's, gaps included.
    communicator_.broadcast(values.data(), values.size(), device_.stream(), unit.name);
    communicator_.synchronize(device_.stream());
    Tensor chunk = own_chunk(u, values);
    if (stage_ >= 3) {
        chunk = allocate(unit.chunk, held_.parameters);
        communicator_.copy_own(values.data(), chunk.data(), unit.chunk, device_.stream(),
                               unit.name);
    }
    // To the optimizer a chunk is a parameter like others.
    chunks_.push_back(std::make_shared<Parameter>(unit.name, chunk));
    chunks_.back()->place_gradient(stage_ >= 2 ? allocate(unit.chunk, held_.gradients)
                                               : own_chunk(u, gradients));
}

}  // namespace ddp
