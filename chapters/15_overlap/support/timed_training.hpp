#pragma once
// Training on made-up samples, and where the time of its steps goes: for the benches, and for the
// picture of a step over a simulated link.
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/small_training.hpp"
#include "15_overlap/ddp.hpp"
#include "common/data/random.hpp"

namespace ddp {

// Seconds of several steps, added up; means over all ranks.
struct StepParts {
    double whole = 0;          // from the moment when all ranks begin until all have ended
    double compute = 0;        // the device's stream has work
    double backward = 0;       // ... and the work is backward
    double left = 0;           // ... after the gradients of the first bucket are ready
    double communication = 0;  // buckets are reduced, or wait for other ranks' buckets
    double exposed = 0;        // the device's stream waits for gradients
};

struct TimedOptions {
    std::vector<int> sample;  // shape of one sample
    int classes = 10;
    int batch = 64;         // samples a step and rank
    bool is_alone = false;  // every rank trains a copy of its own: nothing is sent
    DdpOptions ddp;
};

// Makes `steps` steps on a rank's stream; returns the seconds from when all ranks begin until all
// have ended. All ranks call it together.
double time_steps(Rank& rank, Stream& stream, int steps, const std::function<void()>& step);

class TimedTraining {
  public:
    // All ranks call it together. Everything passed must outlive this object.
    TimedTraining(Communicator& communicator, Device& device, Sequential& model, Random& random,
                  const TimedOptions& options);

    // Makes `steps` steps and returns where their time went. All ranks of the job call it together,
    // with the same number; those of another group may give 0, and only wait.
    StepParts run(int steps);
    // Returns what this rank's two streams did in the last run.
    const std::vector<StreamSpan>& spans() const { return spans_; }

    // Sets whether buckets are sent while backward runs, from the next run on; the same on all
    // ranks.
    void set_overlap(bool overlap) { ddp_.set_overlap(overlap); }

    // Returns the bytes that are reduced in a step.
    double gradient_bytes() const {
        return static_cast<double>(ddp_.gradients().plan().memory_bytes());
    }
    // Returns the bytes of each bucket, in the order in which they are sent.
    std::vector<double> bucket_bytes() const;

  private:
    void step();
    StepParts read();

    Rank& rank_;
    Device& device_;
    DistributedDataParallel ddp_;
    FusedSgd optimizer_;
    SmallTraining training_{device_, optimizer_};
    std::optional<DistributedDataParallel::NoSync> alone_;
    StreamTrack compute_{"compute", device_.stream()};
    StreamTrack communication_{"communication", ddp_.communication_stream()};
    std::vector<Tensor> inputs_;
    std::vector<Labels> labels_;
    std::vector<StreamSpan> spans_;
    std::size_t steps_ = 0;
};

// Returns the median of each part.
StepParts medians(std::span<const StepParts> rounds);

// Returns the share of the communication that overlap hides, of what it could hide: the median over
// the rounds of (off.whole - on.whole) / min(off.communication, off.left). Communication cannot
// begin before the first bucket is ready. Round i of `off` and of `on` were measured in turn.
double hidden_share(std::span<const StepParts> off, std::span<const StepParts> on);

// Returns the speed of the link over which an all-reduce of `gradient_bytes` takes `backward_s`
// seconds: 2 (N - 1) / N of the bytes pass each rank's port. The latency is 0.
LinkSpeed link_as_slow_as(double backward_s, double gradient_bytes, int ranks);

}  // namespace ddp
