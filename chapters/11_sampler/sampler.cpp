#include "11_sampler/sampler.hpp"

#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace ddp {

std::vector<int> random_permutation(int count, std::uint64_t seed) {
    std::mt19937 next(static_cast<std::uint32_t>(seed));
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
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
    samples_per_rank_ = options.drop_last ? samples / world_size : (samples - 1) / world_size + 1;
}

std::vector<int> DistributedSampler::indices() const {
    const std::vector<int> order = order_of_all();
    std::vector<int> own;
    for (std::size_t i = static_cast<std::size_t>(rank_); i < order.size();
         i += static_cast<std::size_t>(world_size_))
        own.push_back(order[i]);
    return own;
}

// Cut, or padded from its own front, until all ranks have as many.
std::vector<int> DistributedSampler::order_of_all() const {
    std::vector<int> order(static_cast<std::size_t>(samples_));
    std::iota(order.begin(), order.end(), 0);
    if (options_.shuffle)
        order = random_permutation(samples_, options_.seed + static_cast<std::uint64_t>(epoch_));
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
