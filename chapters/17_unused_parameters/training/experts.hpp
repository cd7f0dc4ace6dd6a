#pragma once
// The network of this chapter, whose graph differs from step to step and from rank to rank; and the
// same training on one rank that has the batches of all.
#include <cstdint>
#include <deque>
#include <vector>

#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "03_network/loader.hpp"

namespace ddp {

// The experts that a batch goes through, in this order. Empty: the rank has no batch.
using Route = std::vector<int>;
// The routes of all ranks in all steps: routes[step][rank].
using Routes = std::vector<std::vector<Route>>;

// head(sum of expert(trunk(x)) over the experts of the route), on x [batch, 196].
class Experts : public Module {
  public:
    static constexpr int features = 196, count = 2, classes = 10;

    Experts(Device& device, int width, Random& random);
    // Sets the route of the next forward; it has one expert at least.
    void set_route(Route route) { route_ = std::move(route); }

    Variable forward(Variable input) override;
    Parameters parameters() const override;

  private:
    Flatten flatten_;
    Relu relu_;
    Linear trunk_;
    std::deque<Linear> experts_;
    Linear head_;
    Route route_ = {0, 1};
};

// Returns the random batch of a rank in a step; the same arguments give the same batch.
Batch drawn_batch(Device& device, std::uint64_t seed, int step, int rank, int samples);

// The settings that both trainings share.
inline constexpr double expert_learning_rate = 0.05;
inline constexpr int expert_batch = 32;
inline constexpr std::size_t expert_memory = std::size_t{32} << 20;  // bytes of a rank's device

// Trains on one rank with the batches of all, and returns the parameters' values. In each step a
// gradient is the sum of all ranks' gradients, divided by the number of ranks; a parameter on no
// route has none.
std::vector<std::vector<float>> learn_on_one_rank(Device& device, int width, std::uint64_t seed,
                                                  const Routes& routes);

}  // namespace ddp
