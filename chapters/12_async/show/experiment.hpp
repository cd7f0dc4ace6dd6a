#pragma once
// A small network learns Fashion-MNIST in several ways, with workers that are as fast as each other
// and with one that is slow.
#include <memory>
#include <string>
#include <vector>

#include "03_network/layers/sequential.hpp"
#include "12_async/server.hpp"
#include "common/data/fashion_mnist.hpp"

namespace ddp {

enum class Algorithm { synchronous, asynchronous, bounded, local };
std::string text_of(Algorithm algorithm);

struct ExperimentOptions {
    int gradients = 1200;  // in all, at most: rounded down to what the ranks can share
    int batch = 32;
    double learning_rate = 0.1;  // of a step of all workers together
    double compute_s = 0.003;    // each step sleeps so long, as if a device of its own computed
    double slow = 4;             // the slow worker sleeps so many times as long
    int bound = 2;               // of the bounded way
    int every = 8;               // steps from meeting to meeting of local SGD
    std::uint64_t seed = 1;
};

// What a training has come to. On rank 0.
struct Outcome {
    int gradients = 0;
    int updates = 0;  // of the parameters that are shared
    double seconds = 0;
    double mean_staleness = 0;
    int most_staleness = 0, most_ahead = 0;
    double accuracy = 0;  // on the test pictures
    struct Point {
        int gradients;  // so far
        double seconds, loss;
    };
    std::vector<Point> curve;
};

class Experiment {
  public:
    // All ranks make theirs together. `data` must live longer.
    Experiment(Rank& rank, const FashionMnist& data, const ExperimentOptions& options);

    // All ranks call it together. Rank 1 is the slow one, if one is. Throws std::runtime_error if
    // the server has done what it must not.
    Outcome run(Algorithm algorithm, bool has_slow);

    // Two proofs, which throw std::runtime_error when they fail. With one worker asynchronous and
    // synchronous training give the same bits:
    std::string prove_one_worker();
    // ... and local SGD that meets after every step is averaging gradients, but for roundings.
    std::string prove_meeting_every_step();

  private:
    struct Worker;

    Outcome with_server(const ServerOptions& server, bool has_slow);
    Outcome locally(int every, int steps, bool has_slow);
    std::vector<float> values_after(const ServerOptions& server);
    std::unique_ptr<Sequential> make_model();
    double accuracy_of(Sequential& model);

    Rank& rank_;
    const FashionMnist& data_;
    const ExperimentOptions options_;
    Device& device_;
    std::vector<float> values_;  // rank 0's, after the last training
};

}  // namespace ddp
