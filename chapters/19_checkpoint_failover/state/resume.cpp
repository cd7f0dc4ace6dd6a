#include "19_checkpoint_failover/state/resume.hpp"

#include <algorithm>
#include <cmath>

#include "05_ranks/rendezvous.hpp"
#include "common/data/file.hpp"

namespace ddp {
namespace {

constexpr std::size_t slice_floats = 1 << 18;  // of a tensor that are broadcast at once

void copy(float* to, const float* from, std::size_t count, Stream& stream) {
    DDP_CHECK(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream));
}

// Broadcasts a tensor of any size through `staging`, slice by slice.
void broadcast(Communicator& communicator, Stream& stream, ArenaBuffer<float>& staging,
               const NamedTensor& tensor, int root) {
    for (std::size_t first = 0; first < tensor.value.size(); first += slice_floats) {
        const std::size_t count = std::min(slice_floats, tensor.value.size() - first);
        copy(staging.data(), tensor.value.data() + first, count, stream);
        communicator.broadcast(staging.data(), count, root, stream, tensor.name);
        copy(tensor.value.data() + first, staging.data(), count, stream);
    }
}

// Returns the lowest rank that has the newest checkpoint, and its step; step -1 if no rank has any.
std::pair<int, int> find_newest(Rank& rank, const std::optional<Checkpoint>& mine) {
    const std::vector<int> steps = rank.all_gather(mine ? mine->step : -1);
    const auto newest = std::ranges::max_element(steps);  // the first of equal ones
    return {static_cast<int>(newest - steps.begin()), *newest};
}

}  // namespace

bool writes_checkpoints(Rank& rank, Folder& folder) {
    // Rank 0 puts down a file, and the other ranks look whether they see it.
    const std::string probe = rank.broadcast(".seen-by-all-" + new_job_name(), 0);
    if (rank.rank() == 0)
        folder.write(probe, {});
    rank.barrier();
    const bool sees_it = std::ranges::count(folder.names(), probe) > 0;
    rank.barrier();
    if (rank.rank() == 0)
        folder.remove(probe);
    return rank.rank() == 0 || (!sees_it && rank.local_rank() == 0);
}

void begin_next_generation(Rank& rank, Checkpoints& checkpoints, bool writes) {
    const std::vector<int> generations =
        rank.all_gather(rank.local_rank() == 0 ? checkpoints.newest_generation() : 0);
    if (writes)
        checkpoints.begin_generation(std::ranges::max(generations) + 1);
}

void load_tensors(const Safetensors& file, const std::vector<NamedTensor>& tensors,
                  const std::string& name) {
    for (const auto& [tensor, place] : tensors) {
        const SafetensorsHeader::Entry* entry = file.find(tensor);
        if (entry == nullptr)
            refuse(name, "has no '" + tensor + "': it is of another model.");
        const Shape& shape = place.shape();
        if (entry->type != "F32" || !std::ranges::equal(entry->shape, shape, {}, {}, [](int dim) {
                return static_cast<std::size_t>(dim);
            }))
            refuse(name, "has a '" + tensor + "' that is no float32 of " + to_string(shape) +
                             ": it is of another model.");
        const std::vector<float> values = file.values(*entry);
        const auto bad =
            std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
        if (bad != values.end())
            refuse(name, "has a '" + tensor + "' whose element " +
                             std::to_string(bad - values.begin()) +
                             " is infinite or no number: the training had failed before it was "
                             "saved. Remove the file, and the one before it is used.");
        Tensor(place).copy_from(values);
    }
}

std::size_t resume_arena_bytes() {
    return slice_floats * sizeof(float) + SharedArena::unit;
}

std::optional<Resumed> resume(Communicator& communicator, Device& device,
                              const Checkpoints& checkpoints, const TrainingTensors& tensors,
                              const std::map<std::string, std::string>& configuration,
                              std::vector<std::string>& errors) {
    Rank& rank = communicator.rank();
    std::optional<Checkpoint> mine;
    if (rank.local_rank() == 0)  // one rank reads for each node
        mine = checkpoints.newest(errors);
    const auto [from, step] = find_newest(rank, mine);
    if (step < 0)
        return std::nullopt;
    const std::string name = Checkpoints::file_name(step);
    // The metadata travels as a header without tensors.
    SafetensorsHeader header;
    if (rank.rank() == from)
        header.metadata = mine->file.header.metadata;
    const std::string text = rank.broadcast(encode_safetensors(header), from);
    header = decode_safetensors({text.begin(), text.end()}, name).header;
    const Resumed resumed{to_state(header.metadata, name), from};
    require_same_configuration(resumed.state, configuration);
    if (rank.rank() == from)
        for (const auto* list : {&tensors.fixed_in_forward, &tensors.buffers})
            load_tensors(mine->file, *list, name);
    // The tensors travel through the communicator, from the rank that has them.
    ArenaBuffer<float> staging = communicator.allocate<float>(slice_floats);
    rank.barrier();
    for (const auto* list : {&tensors.fixed_in_forward, &tensors.buffers})
        for (const NamedTensor& tensor : *list)
            broadcast(communicator, device.stream(), staging, tensor, from);
    communicator.synchronize(device.stream());
    rank.barrier();
    return resumed;
}

}  // namespace ddp
