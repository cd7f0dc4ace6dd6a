// Making replicas equal, and checking that they are:
//
//     every rank   describe its model in text: name and shape of each tensor
//     rank 0       broadcast the description
//     every rank   compare with its own, and stop at the first difference
//     every rank   pack parameters and buffers into one array
//     rank 0       broadcast the array
//     every rank   unpack it into its model
//     later        compare hashes of all parameters: one number per rank
//
// Without the first three lines a rank with a different model would wait for a broadcast of a
// different size, or take one parameter's numbers for another's.
#include "11_data_parallel/replica.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace ddp {
namespace {

// ---- Are the models alike?

// Returns one line for each parameter and buffer: its name, its shape, and whether it is frozen.
std::string description_of(const Module& model) {
    std::string lines;
    const auto add = [&](const std::string& name, const Tensor& value, const std::string& more) {
        lines += name + " " + to_string(value.shape()) + more + "\n";
    };
    for (const auto& parameter : model.parameters())
        add(parameter->name, parameter->value, parameter->is_frozen ? ", frozen" : "");
    for (const NamedTensor& buffer : model.buffers())
        add(buffer.name, buffer.value, "");
    return lines;
}

// Returns the next line, or "" when there is none left.
std::string next_line(std::istream& lines) {
    std::string line;
    std::getline(lines, line);
    return line;
}

// ---- Broadcasting many tensors as one array

// Enqueues the copy of `count` elements. (A model may have no element to copy.)
void copy(float* to, const float* from, std::size_t count, Stream& stream) {
    if (count > 0)
        DDP_CHECK(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDefault, stream));
}

// One message costs one latency, however long it is. So pack the tensors side by side into
// `staging`, broadcast that, and unpack.
void broadcast(Communicator& communicator, Stream& stream, std::span<const NamedTensor> tensors,
               ArenaBuffer<float>& staging, int root, const std::string& name) {
    // Pack.
    float* end = staging.data();
    for (const NamedTensor& tensor : tensors) {
        copy(end, tensor.value.data(), tensor.value.size(), stream);
        end += tensor.value.size();
    }
    // Broadcast.
    const auto count = static_cast<std::size_t>(end - staging.data());
    communicator.broadcast(staging.data(), count, root, stream, name);
    // Unpack. On the root these are the bits that it has packed.
    const float* begin = staging.data();
    for (const NamedTensor& tensor : tensors) {
        copy(tensor.value.data(), begin, tensor.value.size(), stream);
        begin += tensor.value.size();
    }
}

// Returns all that a model remembers: its parameters, then its buffers.
std::vector<NamedTensor> state_of(const Module& model) {
    std::vector<NamedTensor> state;
    for (const auto& parameter : model.parameters())
        state.push_back({parameter->name, parameter->value});
    for (const NamedTensor& buffer : model.buffers())
        state.push_back(buffer);
    return state;
}

std::size_t elements_of(std::span<const NamedTensor> tensors) {
    std::size_t sum = 0;
    for (const NamedTensor& tensor : tensors)
        sum += tensor.value.size();
    return sum;
}

}  // namespace

void require_same_model(Rank& rank, const Module& model, int root) {
    const std::string mine = description_of(model);
    std::istringstream theirs(rank.all_gather(mine)[static_cast<std::size_t>(root)]), own(mine);
    for (;;) {
        const std::string here = next_line(own), there = next_line(theirs);
        if (here.empty() && there.empty())
            break;  // both have ended, without a difference
        if (there != here)
            throw std::runtime_error("this rank's model has " + (here.empty() ? "nothing" : here) +
                                     " where rank " + std::to_string(root) + "'s has " +
                                     (there.empty() ? "nothing" : there) +
                                     ": all ranks must build the same model");
    }
    // All pass the comparison before any collective: a rank that threw would never take part in it.
    rank.barrier();
}

void copy_from_rank_0(Communicator& communicator, Device& device, const Module& model) {
    require_same_model(communicator.rank(), model, communicator.group().rank(0));
    copy_from_rank(0, communicator, device, model);
}

void copy_from_rank(int root, Communicator& communicator, Device& device, const Module& model) {
    // Collectives need memory of the communicator, and a model's tensors are not there.
    const std::vector<NamedTensor> state = state_of(model);
    ArenaBuffer<float> staging = communicator.allocate<float>(elements_of(state));
    broadcast(communicator, device.stream(), state, staging, root, "model");
    communicator.synchronize(device.stream());
    // After the barrier no rank waits in this broadcast, so memory may be allocated again.
    communicator.rank().barrier();
}

void broadcast_buffers(Communicator& communicator, Device& device, const Module& model,
                       ArenaBuffer<float>& staging, int root) {
    if (const std::vector<NamedTensor> buffers = model.buffers(); !buffers.empty())
        broadcast(communicator, device.stream(), buffers, staging, root, "buffers");
}

std::size_t buffer_elements(const Module& model) {
    return elements_of(model.buffers());
}

// ---- Are the replicas equal?

// FNV-1a (Fowler, Noll and Vo), over 32-bit words in place of bytes.
std::uint64_t hash_of(const Parameters& parameters) {
    std::uint64_t hash = 0xcbf29ce484222325;  // the method's offset basis
    for (const auto& parameter : parameters)
        for (const float value : parameter->value.to_host()) {
            std::uint32_t bits;  // not the number: 0 and -0 are equal numbers, not equal bits
            std::memcpy(&bits, &value, sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3;  // the method's prime
        }
    return hash;
}

void require_equal_replicas(Rank& rank, const Parameters& parameters) {
    // Every rank receives all hashes, so every rank throws, or none does.
    const std::vector<std::uint64_t> all = rank.all_gather(hash_of(parameters));
    std::string others;
    for (std::size_t r = 1; r < all.size(); r++)
        if (all[r] != all[0])
            others += (others.empty() ? "" : ", ") + std::to_string(r);
    if (!others.empty())
        throw std::runtime_error("the replicas have drifted apart: the parameters of rank " +
                                 others + " are not those of rank 0");
}

// ---- The samples of a rank

std::vector<int> shard(const std::vector<int>& order, int rank, int world_size) {
    const std::size_t ranks = static_cast<std::size_t>(world_size);
    std::vector<int> mine;
    // One sample for each rank per round. An incomplete last round is left out.
    for (std::size_t i = 0; i + ranks <= order.size(); i += ranks)
        mine.push_back(order[i + static_cast<std::size_t>(rank)]);
    return mine;
}

}  // namespace ddp
