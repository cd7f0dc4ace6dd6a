#pragma once
// Replicas: every rank has a copy of the whole model, and all copies must stay the same.
#include "03_network/layer.hpp"
#include "09_all_reduce/communicator.hpp"
#include "11_data_parallel/support/programs.hpp"

namespace ddp {

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
// Throws std::runtime_error that names the ranks whose parameters differ from rank 0's in any bit.
// All ranks call it together.
void require_equal_replicas(Rank& rank, const Parameters& parameters);

// Returns the samples of rank `rank` of `world_size`: every world_size-th entry of `order`,
// starting with entry `rank`. The remainder at the end is left out, so all ranks get the same
// number.
std::vector<int> shard(const std::vector<int>& order, int rank, int world_size);

}  // namespace ddp
