#pragma once
// Who trains on what: the samples of an epoch, divided among ranks. The same indices as PyTorch's
// torch.utils.data.distributed.DistributedSampler.
#include <cstdint>
#include <vector>

namespace ddp {

// 0 .. count-1 in the order of PyTorch's torch.randperm(count) with a generator on the CPU of that
// seed: Fisher and Yates's shuffle from the front, with the numbers of a Mersenne Twister.
std::vector<int> random_permutation(int count, std::uint64_t seed);

struct SamplerOptions {
    bool shuffle = true;     // or in the order of the data set
    std::uint64_t seed = 0;  // the same on all ranks
    bool drop_last = false;  // what does not divide is left out; else samples from the front pad it
};

class DistributedSampler {
  public:
    // For `samples` samples. Throws std::invalid_argument for no sample, and for a rank that is not
    // in the world.
    DistributedSampler(int samples, int rank, int world_size, SamplerOptions options = {});

    // Another epoch, another order, if the sampler shuffles. Without it all epochs are epoch 0. All
    // ranks must set the same.
    void set_epoch(int epoch) { epoch_ = epoch; }

    // This rank's samples in this epoch: every world_size-th of the order that all ranks share,
    // from number `rank` on.
    std::vector<int> indices() const;

    // The same on all ranks.
    int samples_per_rank() const { return samples_per_rank_; }
    // How many are counted twice (or more often, of very few samples) over all ranks, or, below 0,
    // left out.
    int surplus() const { return samples_per_rank_ * world_size_ - samples_; }

  private:
    std::vector<int> order_of_all() const;

    const int samples_, rank_, world_size_;
    const SamplerOptions options_;
    int samples_per_rank_;
    int epoch_ = 0;
};

// For measuring: every sample once, in the order of the data set. The first ranks may have one more
// than the others, so nothing may be called for each batch that needs all ranks.
std::vector<int> unpadded_indices(int samples, int rank, int world_size);

}  // namespace ddp
