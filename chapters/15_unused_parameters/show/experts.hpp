#pragma once
// The network of this chapter, whose graph is another one from step to step and from rank to rank;
// and what one rank learns that has the batches of all.
#include <cstdint>
#include <deque>
#include <vector>

#include "03_network/layers/flatten.hpp"
#include "03_network/layers/relu.hpp"
#include "03_network/linear.hpp"
#include "03_network/loader.hpp"

namespace ddp {

// Which experts a batch goes through, in this order; none: there is no batch.
using Route = std::vector<int>;
// For each step the route of each rank.
using Routes = std::vector<std::vector<Route>>;

// head(sum of expert(trunk(x)) over the experts of the route).
class Experts : public Module {
  public:
    static constexpr int features = 196, count = 2, classes = 10;

    Experts(Device& device, int width, Random& random);
    // Of the next forward; one expert at least.
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

// The batch of a rank in a step: drawn, the same for the same numbers.
Batch drawn_batch(Device& device, std::uint64_t seed, int step, int rank, int samples);

// What the two have in common.
inline constexpr double expert_learning_rate = 0.05;
inline constexpr int expert_batch = 32;
inline constexpr std::size_t expert_memory = std::size_t{32} << 20;  // of a rank's device

// The parameters that one rank has learned after these steps: of each the gradient is the sum of
// all routes' gradients, divided by the number of ranks. A parameter on no route has none.
std::vector<std::vector<float>> learn_on_one_rank(Device& device, int width, std::uint64_t seed,
                                                  const Routes& routes);

}  // namespace ddp
