// Ten samples on four ranks, after the shuffle. The order is padded from its own front (or cut,
// with drop_last) until it divides; then it is dealt out like cards:
//
//     order    7  2  9  4  0  6  1  8  3  5 | 7  2
//     rank     0  1  2  3  0  1  2  3  0  1 | 2  3
//
// No message is needed: every rank computes the whole order from the same seed, and keeps its own
// entries.
#include "12_sampler/sampler.hpp"

#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace ddp {

std::vector<int> random_permutation(int count, std::uint64_t seed) {
    // PyTorch's CPU generator is the same Mersenne Twister, and takes the low 32 bits of a seed.
    std::mt19937 next(static_cast<std::uint32_t>(seed));
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    // Fisher and Yates: swap each entry with a random one from the rest, itself included.
    for (std::size_t i = 0; i + 1 < order.size(); i++)
        std::swap(order[i], order[i + next() % (order.size() - i)]);
    return order;
}

DistributedSampler::DistributedSampler(int samples, int rank, int world_size,
                                       SamplerOptions options)
    : samples_(samples), rank_(rank), world_size_(world_size), options_(options) {
    if (samples < 1)
        throw std::invalid_argument("a sampler needs a sample; this data set has " +
                                    std::to_string(samples));
    if (rank < 0 || rank >= world_size)
        throw std::invalid_argument("there is no rank " + std::to_string(rank) + " in a world of " +
                                    std::to_string(world_size));
    // Rounded down where the remainder is dropped, and up where it is padded.
    samples_per_rank_ = options.drop_last ? samples / world_size : (samples - 1) / world_size + 1;
}

std::vector<int> DistributedSampler::indices() const {
    const std::vector<int> order = order_of_all();
    std::vector<int> own;
    // Deal: this rank takes entries rank, rank + W, rank + 2 W, ...
    for (std::size_t i = static_cast<std::size_t>(rank_); i < order.size();
         i += static_cast<std::size_t>(world_size_))
        own.push_back(order[i]);
    return own;
}

// Returns the order of this epoch, the same on all ranks, in a length that world_size divides.
std::vector<int> DistributedSampler::order_of_all() const {
    // Shuffle. Another epoch is another seed, and so another order.
    std::vector<int> order(static_cast<std::size_t>(samples_));
    std::iota(order.begin(), order.end(), 0);
    if (options_.shuffle)
        order = random_permutation(samples_, options_.seed + static_cast<std::uint64_t>(epoch_));
    // Cut or pad. Padding repeats the front, several times if there are fewer samples than ranks.
    order.resize(static_cast<std::size_t>(samples_per_rank_ * world_size_));
    for (std::size_t i = static_cast<std::size_t>(samples_); i < order.size(); i++)
        order[i] = order[i - static_cast<std::size_t>(samples_)];
    return order;
}

std::vector<int> unpadded_indices(int samples, int rank, int world_size) {
    std::vector<int> own;
    for (int i = rank; i < samples; i += world_size)
        own.push_back(i);
    return own;
}

}  // namespace ddp
