#pragma once
// A small network learns Fashion-MNIST with four algorithms, with equally fast workers and with a
// slow one.
#include <memory>
#include <string>
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "03_network/loader.hpp"
#include "13_async/server.hpp"
#include "common/data/fashion_mnist.hpp"

namespace ddp {

enum class Algorithm { synchronous, asynchronous, bounded, local };
// Returns the name in the table: "bounded staleness".
std::string to_string(Algorithm algorithm);

struct ExperimentOptions {
    int gradients = 1200;        // in all; rounded down to a multiple of the workers (or ranks)
    int batch = 32;              // pictures per gradient
    double learning_rate = 0.1;  // of a step with the gradients of all workers
    double compute_s = 0.003;    // seconds that each step sleeps, like a device that computes
    double slow = 4;             // the factor by which the slow worker sleeps longer
    int bound = 2;               // of Algorithm::bounded, in steps
    int every = 8;               // steps between two averages of local SGD
    std::uint64_t seed = 1;
};

// The result of a training run. It is complete on rank 0 only.
struct Outcome {
    int gradients = 0;
    int updates = 0;  // of the server's parameters; of local SGD: averages
    double seconds = 0;
    double mean_staleness = 0;
    int max_staleness = 0, max_ahead = 0;
    double idle = 0;      // the share of the workers' time in which they do not compute
    double accuracy = 0;  // on the test pictures
    struct Point {
        int gradients;  // applied so far
        double seconds, loss;
    };
    std::vector<Point> curve;
};

class Experiment {
  public:
    // `rank` and `data` must outlive this object. All ranks construct it together. Throws
    // OptionError if there are too few pictures for one step.
    Experiment(Rank& rank, const FashionMnist& data, const ExperimentOptions& options);

    // Trains a new network. With `has_slow` rank 1 is slow. All ranks call it together. Throws
    // std::runtime_error if the server's log breaks a rule.
    Outcome run(Algorithm algorithm, bool has_slow);

  private:
    struct Worker;

    Outcome with_server(const ServerOptions& server, bool has_slow);
    Outcome locally(int every, int steps, bool has_slow);
    std::unique_ptr<Sequential> make_model();
    double accuracy_of(Sequential& model);

    Rank& rank_;
    const FashionMnist& data_;
    const ExperimentOptions options_;
    Device& device_;
    Loader &train_, &test_;
};

}  // namespace ddp
