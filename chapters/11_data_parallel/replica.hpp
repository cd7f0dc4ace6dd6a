#pragma once
// Replicas: every rank has a copy of the whole model, and all copies must stay the same.
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "03_network/layer.hpp"
#include "03_network/metrics.hpp"
#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

// Reads the data set (03_network/models.hpp) once in each process. Rank 0 says what is the label.
FashionMnist load_data(World& world, const CommonOptions& common);

// Returns the bytes that a rank of the book's programs reserves on its device at the start: 512
// MiB, or less where the ranks share a small device. Later, no memory may be allocated while ranks
// wait for each other. Throws OptionError if there is too little for so many ranks.
std::size_t rank_memory(const Rank& rank);

// Constructs a T that lives until every rank has ended the run, and returns it. An object that owns
// device memory should be made like this: when a rank fails, kernels of the other ranks still wait
// for it, freeing memory may wait for those kernels, and the error would never be reported.
template <class T, class... Arguments>
T& make_run_scoped(Rank& rank, Arguments&&... arguments) {
    const auto made = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    rank.keep_until_run_ends(made);
    return *made;
}

// Compares names, shapes and which parameters are frozen with rank `root`'s model. Throws
// std::runtime_error that names the first difference. All ranks call it together.
void require_same_model(Rank& rank, const Module& model, int root = 0);
// Copies the parameters (frozen ones included) and buffers of rank 0, which is its group's first,
// to this rank's model. First calls require_same_model. All ranks of the job call it together.
void copy_from_rank_0(Communicator& communicator, Device& device, const Module& model);
// Copies from rank `root` instead, without the comparison: the models must be known to be alike.
void copy_from_rank(int root, Communicator& communicator, Device& device, const Module& model);

// Copies the root's buffers to every rank. (Running averages differ between ranks, as their data
// does.) Only enqueues, in the device's stream. `staging` is memory of the communicator with
// buffer_elements(model) elements. All ranks call it together.
void broadcast_buffers(Communicator& communicator, Device& device, const Module& model,
                       ArenaBuffer<float>& staging, int root = 0);
// Returns the number of elements of all buffers of the model.
std::size_t buffer_elements(const Module& model);

// Returns a hash of all bits of the parameters: equal for equal bits, and almost surely different
// otherwise. Waits for the device.
std::uint64_t hash_of(const Parameters& parameters);
// Returns the hash as 16 hexadecimal digits.
std::string text_of_hash(std::uint64_t hash);

// Throws std::runtime_error that names the ranks whose parameters differ from rank 0's in any bit.
// All ranks call it together.
void require_equal_replicas(Rank& rank, const Parameters& parameters);
// Returns the sentence to print after that check: "The parameters of all 4 ranks are equal to the
// bit: hash ...".
std::string text_of_equal_replicas(int world_size, const std::string& hash);

// Returns the totals over all ranks: sums of sums and of counts, the same on every rank. (The mean
// of the ranks' means is a different number if ranks have seen different numbers of samples.) All
// ranks call it together.
Metrics::Totals add_up(Rank& rank, const Metrics::Totals& mine);

// Returns the samples of rank `rank` of `world_size`: every world_size-th entry of `order`,
// starting with entry `rank`. The remainder at the end is left out, so all ranks get the same
// number.
std::vector<int> shard(const std::vector<int>& order, int rank, int world_size);

}  // namespace ddp
