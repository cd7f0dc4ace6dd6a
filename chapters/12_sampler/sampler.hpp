#pragma once
// Which rank trains on which samples of an epoch. The indices are those of PyTorch's
// torch.utils.data.distributed.DistributedSampler.
#include <cstdint>
#include <vector>

namespace ddp {

// Returns 0 .. count-1 in the order of PyTorch's torch.randperm(count) with a CPU generator of that
// seed: the shuffle of Fisher and Yates from the front, with the numbers of a Mersenne Twister.
std::vector<int> random_permutation(int count, std::uint64_t seed);

struct SamplerOptions {
    bool shuffle = true;     // false: the order of the data set
    std::uint64_t seed = 0;  // the same on all ranks
    bool drop_last =
        false;  // leave the remainder out; otherwise pad it with samples from the front
};

class DistributedSampler {
  public:
    // For a data set of `samples` samples. Throws std::invalid_argument if `samples` is below 1, or
    // if there is no rank `rank` in a world of `world_size`.
    DistributedSampler(int samples, int rank, int world_size, SamplerOptions options = {});

    // Makes indices() shuffle for this epoch. Without a call every epoch has the order of epoch 0.
    // All ranks must pass the same number.
    void set_epoch(int epoch) { epoch_ = epoch; }

    // Returns this rank's samples in this epoch: every world_size-th entry of the order that all
    // ranks share, starting with entry `rank`.
    std::vector<int> indices() const;

    // Returns the length of indices(): the same on all ranks.
    int samples_per_rank() const { return samples_per_rank_; }
    // Returns how many samples all ranks together see in addition to the data set: above 0 they are
    // repeated, below 0 left out.
    int surplus() const { return samples_per_rank_ * world_size_ - samples_; }

  private:
    std::vector<int> order_of_all() const;

    const int samples_, rank_, world_size_;
    const SamplerOptions options_;
    int samples_per_rank_;
    int epoch_ = 0;
};

// Returns this rank's samples for measuring: every sample once over all ranks, in the order of the
// data set. The first ranks may have one sample more than the others, so no collective may be
// called for each batch.
std::vector<int> unpadded_indices(int samples, int rank, int world_size);

}  // namespace ddp
