#pragma once
// Training with samples that are made up, and where the time of its steps goes: for benches.
#include <optional>
#include <vector>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/sequential.hpp"
#include "03_network/optimizers.hpp"
#include "14_overlap/ddp.hpp"
#include "common/data/random.hpp"

namespace ddp {

// Seconds of several steps, added up; the mean of all ranks.
struct StepParts {
    double whole = 0;          // from when all ranks begin until all are ready
    double compute = 0;        // the device's stream has work
    double backward = 0;       // ... of this kind
    double left = 0;           // ... after the gradients of the first bucket are ready
    double communication = 0;  // buckets are reduced, or wait for other ranks' buckets
    double exposed = 0;        // the device's stream waits for gradients
};

struct TimedOptions {
    std::vector<int> sample;  // shape of one
    int classes = 10;
    int batch = 64;
    bool is_alone = false;  // every rank trains its own copy: nothing is sent
    DdpOptions ddp;
};

class TimedTraining {
  public:
    // All must live longer. All ranks make theirs together.
    TimedTraining(Communicator& communicator, Device& device, Sequential& model, Random& random,
                  const TimedOptions& options);

    // All ranks call it together, with the same number.
    StepParts run(int steps);

    // What is reduced in a step.
    double gradient_bytes() const {
        return static_cast<double>(ddp_.gradients().plan().memory_bytes());
    }

  private:
    void step();
    StepParts read();

    Rank& rank_;
    Device& device_;
    DistributedDataParallel ddp_;
    Sgd optimizer_;
    std::optional<DistributedDataParallel::NoSync> alone_;
    Tape tape_{device_};
    StreamTrack compute_{"compute", device_.stream()};
    StreamTrack communication_{"communication", ddp_.communication_stream()};
    std::vector<Tensor> inputs_;
    std::vector<Labels> labels_;
    std::size_t steps_ = 0;
};

}  // namespace ddp
