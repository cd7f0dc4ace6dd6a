#pragma once
// Replicas: every rank has the whole model, and all are to be the same.
#include <cstdint>
#include <memory>
#include <utility>

#include "03_network/layer.hpp"
#include "03_network/metrics.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

// What a rank of the book's programs reserves of its device: nothing may be allocated while ranks
// wait for each other.
inline constexpr std::size_t rank_memory = std::size_t{512} << 20;

// A T that lives until every rank has ended the run. What holds memory of the device is best made
// so: when a rank fails, the kernels of the others wait for it; to free memory may be to wait for
// these kernels, and nobody would learn what has happened.
template <class T, class... Arguments>
T& make_run_scoped(Rank& rank, Arguments&&... arguments) {
    const auto made = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    rank.keep_until_run_ends(made);
    return *made;
}

// Makes this rank's model the same as rank 0's: parameters (frozen ones, too) and buffers. Names,
// shapes and what is frozen are compared first; throws std::runtime_error naming the first
// difference. All ranks call it together; it is complete on all of them when it returns.
void copy_from_rank_0(Communicator& communicator, Device& device, const Module& model);
// The same from any rank, of models that are known to be alike.
void copy_from_rank(int root, Communicator& communicator, Device& device, const Module& model);

// The root's buffers, on every rank: running averages differ where the data differs. Enqueues only,
// in the device's stream. `staging` is memory of the communicator for all of them
// (buffer_elements()).
void broadcast_buffers(Communicator& communicator, Device& device, const Module& model,
                       ArenaBuffer<float>& staging, int root = 0);
std::size_t buffer_elements(const Module& model);

// A number that is the same for models with the same bits in their parameters, and almost surely
// another one for others. Waits for the device.
std::uint64_t hash_of(const Parameters& parameters);
std::string text_of_hash(std::uint64_t hash);  // 16 digits

// Throws std::runtime_error naming the ranks whose parameters differ from rank 0's in any bit. All
// ranks call it together.
void require_equal_replicas(Rank& rank, const Parameters& parameters);
// What can be said after that, with the hash of them all: "The parameters of all 4 ranks are equal
// to the bit: hash ..."
std::string text_of_equal_replicas(int world_size, const std::string& hash);

// The totals of all ranks: sums of sums and of counts. (The mean of the ranks' means is another
// number where they have seen different numbers of samples.) All ranks call it together.
Metrics::Totals add_up(Rank& rank, const Metrics::Totals& mine);

// The part of `order` that rank `rank` of `world_size` works on: every world_size-th sample, from
// number `rank` on. What does not divide is left out at the end, so that all ranks have as many.
std::vector<int> shard(const std::vector<int>& order, int rank, int world_size);

}  // namespace ddp
