#include "17_checkpoint_failover/state/resume.hpp"

#include <algorithm>

#include "05_ranks/rendezvous.hpp"
#include "common/data/file.hpp"

namespace ddp {
namespace {

constexpr std::size_t piece = 1 << 18;  // floats that travel at once

void copy(float* to, const float* from, std::size_t count, Stream& stream) {
    DDP_CHECK(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream));
}

void broadcast(Communicator& communicator, Stream& stream, ArenaBuffer<float>& staging,
               const NamedTensor& tensor, int root) {
    for (std::size_t first = 0; first < tensor.value.size(); first += piece) {
        const std::size_t count = std::min(piece, tensor.value.size() - first);
        copy(staging.data(), tensor.value.data() + first, count, stream);
        communicator.broadcast(staging.data(), count, root, stream, tensor.name);
        copy(tensor.value.data() + first, staging.data(), count, stream);
    }
}

// The lowest rank that has the newest, and its step; -1 if nobody has any.
std::pair<int, int> find_newest(Rank& rank, const std::optional<Checkpoint>& mine) {
    const std::vector<std::string> steps = rank.all_gather(std::to_string(mine ? mine->step : -1));
    int from = 0, newest = -1;
    for (int r = 0; r < rank.world_size(); r++)
        if (const int step = std::stoi(steps[static_cast<std::size_t>(r)]); step > newest) {
            newest = step;
            from = r;
        }
    return {from, newest};
}

}  // namespace

bool writes_checkpoints(Rank& rank, Folder& folder) {
    const std::string word = rank.broadcast(".seen-by-all-" + new_job_name(), 0);
    if (rank.rank() == 0)
        folder.write(word, {});
    rank.barrier();
    const bool sees_it = std::ranges::count(folder.names(), word) > 0;
    rank.barrier();
    if (rank.rank() == 0)
        folder.remove(word);
    return rank.rank() == 0 || (!sees_it && rank.local_rank() == 0);
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
            refuse(name, "has a '" + tensor + "' that is no float32 of " + text_of(shape) +
                             ": it is of another model.");
        Tensor(place).copy_from(file.values(*entry));
    }
}

std::size_t resume_arena_bytes() {
    return piece * sizeof(float) + SharedArena::unit;
}

std::optional<Resumed> resume(Communicator& communicator, Device& device,
                              const Checkpoints& checkpoints, const TrainingTensors& tensors,
                              const std::map<std::string, std::string>& configuration,
                              std::vector<std::string>& complaints) {
    Rank& rank = communicator.rank();
    std::optional<Checkpoint> mine;
    if (rank.local_rank() == 0)  // one look for each host
        mine = checkpoints.newest(complaints);
    const auto [from, step] = find_newest(rank, mine);
    if (step < 0)
        return std::nullopt;
    const std::string name = Checkpoints::file_name(step);
    // All else but the tensors, in a file of its own that has no others.
    SafetensorsHeader words;
    if (rank.rank() == from)
        words.metadata = mine->file.header.metadata;
    const std::string text = rank.broadcast(encode_safetensors(words), from);
    words = decode_safetensors({text.begin(), text.end()}, name).header;
    const Resumed resumed{to_state(words.metadata, name), from};
    require_same_configuration(resumed.state, configuration);
    if (rank.rank() == from)
        for (const auto* list : {&tensors.fixed_in_forward, &tensors.buffers})
            load_tensors(mine->file, *list, name);
    ArenaBuffer<float> staging = communicator.allocate<float>(piece);
    rank.barrier();
    for (const auto* list : {&tensors.fixed_in_forward, &tensors.buffers})
        for (const NamedTensor& tensor : *list)
            broadcast(communicator, device.stream(), staging, tensor, from);
    communicator.synchronize(device.stream());
    rank.barrier();
    return resumed;
}

}  // namespace ddp
