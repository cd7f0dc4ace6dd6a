#pragma once
// A small network with ways that a step may take or leave, and one rank's training of it.
#include <functional>
#include <string>
#include <vector>

#include "03_network/layers/flatten.hpp"
#include "03_network/layers/relu.hpp"
#include "03_network/linear.hpp"
#include "03_network/optimizers.hpp"
#include "15_unused_parameters/find_unused.hpp"
#include "15_unused_parameters/join.hpp"
#include "tests/chapters/support/replicas.hpp"

namespace ddp::test {

// head(way a + way b + way c): a(x), and for the other two tied(relu(b(x))), tied(relu(c(x))). What
// is tied is used if b or c is.
class Paths : public Module {
  public:
    Paths(Device& device, Random& random);
    Variable forward(Variable input) override;
    Parameters parameters() const override;

    std::string ways = "abc";  // that the next forward takes, one at least
    Variable before_head;      // of the last one

  private:
    Flatten flatten_;
    Relu relu_;
    Linear a_, b_, c_, tied_, head_;
};

// Everything on one rank. Seeds differ from rank to rank.
struct Walker {
    enum class Search { none, every_step, once };

    Walker(Rank& rank, Search search, std::size_t cap_bytes = default_bucket_bytes);

    // On samples of its own: of this rank in its step number `number`.
    Variable forward(const std::string& ways, int number);
    void backward(const std::string& ways, int number);
    void clear();
    // backward, a step of the optimizer, and clear.
    void step(const std::string& ways, int number);
    Parameter& parameter(const std::string& name);
    // Empty if it is absent.
    std::vector<float> gradient(const std::string& name);
    void synchronize() { communicator->synchronize(device.stream()); }

    Rank& rank;
    Device& device;
    Paths model;
    const std::unique_ptr<Communicator> communicator;
    DistributedDataParallel ddp;
    Sgd optimizer;
    Tape tape;
    std::optional<FindUnused> find_unused;
    std::optional<StaticGraph> static_graph;
    DdpHooks hooks;
    std::vector<std::string> sent;  // the buckets
};

// After each step the parameters of one rank that takes every rank's part: ways(step, rank).
using Ways = std::function<std::string(int step, int rank)>;
std::vector<std::vector<std::vector<float>>> walk_alone(int ranks, int steps, const Ways& ways);

// The same on several ranks: the first difference after any step, or "".
std::string difference_from_walking_alone(World& world, Walker::Search search, int steps,
                                          const Ways& ways);

}  // namespace ddp::test
