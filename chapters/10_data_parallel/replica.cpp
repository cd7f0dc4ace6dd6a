#include "10_data_parallel/replica.hpp"

#include <algorithm>
#include <cstring>
#include <iomanip>
#include <sstream>
#include <stdexcept>

namespace ddp {
namespace {

// Everything that a model remembers.
std::vector<NamedTensor> state_of(const Module& model) {
    std::vector<NamedTensor> state;
    for (const auto& parameter : model.parameters())
        state.push_back({parameter->name, parameter->value});
    for (const NamedTensor& buffer : model.buffers())
        state.push_back(buffer);
    return state;
}

// A line for each tensor.
std::string description_of(const Module& model) {
    std::string lines;
    const auto add = [&](const std::string& name, const Tensor& value, const std::string& more) {
        lines += name + " " + text_of(value.shape()) + more + "\n";
    };
    for (const auto& parameter : model.parameters())
        add(parameter->name, parameter->value, parameter->is_frozen ? ", frozen" : "");
    for (const NamedTensor& buffer : model.buffers())
        add(buffer.name, buffer.value, "");
    return lines;
}

// "" at the end.
std::string next_line(std::istream& lines) {
    std::string line;
    std::getline(lines, line);
    return line;
}

void require_same_model(Rank& rank, const Module& model) {
    const std::string mine = description_of(model);
    std::istringstream theirs(rank.broadcast(mine, 0)), own(mine);
    for (;;) {
        const std::string here = next_line(own), there = next_line(theirs);
        if (here.empty() && there.empty())
            break;
        if (there != here)
            throw std::runtime_error("this rank's model has " + (here.empty() ? "nothing" : here) +
                                     " where rank 0's has " + (there.empty() ? "nothing" : there) +
                                     ": all ranks must build the same model");
    }
    rank.barrier();  // nobody goes on while another rank's model is refused
}

void copy(float* to, const float* from, std::size_t count, Stream& stream) {
    if (count > 0)
        DDP_CHECK(
            cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream));
}

// Side by side in `staging`, from the root, and back.
void broadcast(Communicator& communicator, Stream& stream, std::span<const NamedTensor> tensors,
               ArenaBuffer<float>& staging, int root, const std::string& name) {
    float* end = staging.data();
    for (const NamedTensor& tensor : tensors) {
        copy(end, tensor.value.data(), tensor.value.size(), stream);
        end += tensor.value.size();
    }
    const auto count = static_cast<std::size_t>(end - staging.data());
    communicator.broadcast(staging.data(), count, root, stream, name);
    const float* begin = staging.data();
    for (const NamedTensor& tensor : tensors) {
        copy(tensor.value.data(), begin, tensor.value.size(), stream);
        begin += tensor.value.size();
    }
}

std::size_t elements_of(std::span<const NamedTensor> tensors) {
    std::size_t sum = 0;
    for (const NamedTensor& tensor : tensors)
        sum += tensor.value.size();
    return sum;
}

}  // namespace

void copy_from_rank_0(Communicator& communicator, Device& device, const Module& model) {
    require_same_model(communicator.rank(), model);
    copy_from_rank(0, communicator, device, model);
}

void copy_from_rank(int root, Communicator& communicator, Device& device, const Module& model) {
    const std::vector<NamedTensor> state = state_of(model);
    ArenaBuffer<float> staging = communicator.allocate<float>(elements_of(state));
    broadcast(communicator, device.stream(), state, staging, root, "model");
    communicator.synchronize(device.stream());
    communicator.rank().barrier();  // from here on memory may be allocated again: nobody waits
}

void broadcast_buffers(Communicator& communicator, Device& device, const Module& model,
                       ArenaBuffer<float>& staging, int root) {
    if (const std::vector<NamedTensor> buffers = model.buffers(); !buffers.empty())
        broadcast(communicator, device.stream(), buffers, staging, root, "buffers");
}

std::size_t buffer_elements(const Module& model) {
    return elements_of(model.buffers());
}

// FNV-1a over the 32-bit words (Fowler, Noll and Vo).
std::uint64_t hash_of(const Parameters& parameters) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const auto& parameter : parameters)
        for (const float value : parameter->value.to_host()) {
            std::uint32_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3;
        }
    return hash;
}

std::string text_of_hash(std::uint64_t hash) {
    std::ostringstream text;
    text << std::hex << std::setfill('0') << std::setw(16) << hash;
    return text.str();
}

void require_equal_replicas(Rank& rank, const Parameters& parameters) {
    const std::vector<std::string> all = rank.all_gather(text_of_hash(hash_of(parameters)));
    std::string others;
    for (std::size_t r = 1; r < all.size(); r++)
        if (all[r] != all[0])
            others += (others.empty() ? "" : ", ") + std::to_string(r);
    if (!others.empty())
        throw std::runtime_error("the replicas have drifted apart: the parameters of rank " +
                                 others + " are not those of rank 0");
}

std::string text_of_equal_replicas(int world_size, const std::string& hash) {
    if (world_size == 1)
        return "The parameters of the only rank: hash " + hash;
    return "The parameters of all " + std::to_string(world_size) +
           " ranks are equal to the bit: hash " + hash;
}

Metrics::Totals add_up(Rank& rank, const Metrics::Totals& mine) {
    const std::string bytes(reinterpret_cast<const char*>(&mine), sizeof mine);
    Metrics::Totals sum;
    for (const std::string& each : rank.all_gather(bytes)) {
        Metrics::Totals theirs;
        std::memcpy(&theirs, each.data(), sizeof theirs);
        sum.loss_sum += theirs.loss_sum;
        sum.correct += theirs.correct;
        sum.samples += theirs.samples;
        sum.steps = std::max(sum.steps, theirs.steps);
        if (theirs.first_bad_step >= 0 &&
            (sum.first_bad_step < 0 || theirs.first_bad_step < sum.first_bad_step))
            sum.first_bad_step = theirs.first_bad_step;
    }
    return sum;
}

std::vector<int> shard(const std::vector<int>& order, int rank, int world_size) {
    const std::size_t ranks = static_cast<std::size_t>(world_size);
    std::vector<int> mine;
    for (std::size_t i = 0; i + ranks <= order.size(); i += ranks)
        mine.push_back(order[i + static_cast<std::size_t>(rank)]);
    return mine;
}

}  // namespace ddp
