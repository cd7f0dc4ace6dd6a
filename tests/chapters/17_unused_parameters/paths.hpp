#pragma once
// A small network with branches that a step may take or leave out, and one rank that trains it.
#include <functional>
#include <string>
#include <vector>

#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "03_network/optimizers.hpp"
#include "17_unused_parameters/find_unused.hpp"
#include "17_unused_parameters/join.hpp"
#include "17_unused_parameters/static_graph.hpp"
#include "tests/chapters/support/replicas.hpp"

namespace ddp::test {

// head(branch a + branch b + branch c). Branch a is a(x), b is tied(relu(b(x))) and c is
// tied(relu(c(x))): the tied layer is used if b or c is.
class Paths : public Module {
  public:
    Paths(Device& device, Random& random);
    Variable forward(Variable input) override;
    Parameters parameters() const override;

    std::string branches = "abc";  // that the next forward takes, one at least
    Variable before_head;          // of the last one

  private:
    Flatten flatten_;
    Relu relu_;
    Linear a_, b_, c_, tied_, head_;
};

// All that one rank needs. Seeds differ from rank to rank.
struct Walker {
    enum class Search { none, every_step, once };

    Walker(Rank& rank, Search search, std::size_t cap_bytes = default_bucket_bytes);

    // Uses the samples of this rank in step `number`.
    Variable forward(const std::string& branches, int number);
    void backward(const std::string& branches, int number);
    void clear();
    // Runs backward and a step of the optimizer, and clears the gradients.
    void step(const std::string& branches, int number);
    Parameter& parameter(const std::string& name);
    // Returns the gradient; empty if it is absent.
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

// Returns, for each step, the parameters of one rank that computes every rank's share:
// branches(step, rank).
using Branches = std::function<std::string(int step, int rank)>;
std::vector<std::vector<std::vector<float>>> walk_alone(int ranks, int steps,
                                                        const Branches& branches);

// Runs the same on several ranks. Returns the first difference after any step, or "".
std::string difference_from_walking_alone(World& world, Walker::Search search, int steps,
                                          const Branches& branches);

}  // namespace ddp::test
