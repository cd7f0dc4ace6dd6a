#pragma once
// Dropout: in training a random share of the numbers becomes 0, a different one in every step.
// (Srivastava et al., 2014; torch.nn.Dropout.) A sample's mask does not depend on the rank.
//
//     DropoutMasks masks(seed);
//     model.add<Dropout>("dropout1", 0.1, masks);
//     for each step:
//         masks.begin({.step = step, .samples = batch, .first = rank, .stride = world_size});
#include <cstdint>

#include "03_network/layer.hpp"

namespace ddp {

// Says which samples the next forward passes see. Sample i of this rank's batch has the number
// first + i * stride in the step's whole batch, which all ranks (and all micro-batches) share.
struct DropoutStep {
    std::uint64_t step = 0;
    int samples = 0;  // in this rank's batch
    int first = 0, stride = 1;
};

// The seed, which is the same on all ranks, and the step: all dropout layers of a model share them.
class DropoutMasks {
  public:
    explicit DropoutMasks(std::uint64_t seed) : seed_(seed) {}

    // Chooses the masks; call it before every forward in training. Throws std::invalid_argument
    // unless samples and stride are positive and `first` is not negative.
    void begin(const DropoutStep& step);

    std::uint64_t seed() const { return seed_; }
    const DropoutStep& now() const { return now_; }

  private:
    const std::uint64_t seed_;
    DropoutStep now_;
};

class Dropout : public Module {
  public:
    // Drops with this probability. `masks` must outlive the layer. Layers with different names have
    // different masks. Throws std::invalid_argument if the probability is not within [0, 1].
    Dropout(std::string name, double probability, const DropoutMasks& masks);

    // In training, replaces each number by 0 or by itself / (1 - probability), so that the expected
    // value stays the same; in evaluation, returns the input. Throws std::logic_error unless the
    // first dimension is the samples, or a multiple of them: [batch * tokens, ...].
    Variable forward(Variable input) override;

  private:
    const double probability_;
    const DropoutMasks& masks_;
};

}  // namespace ddp
