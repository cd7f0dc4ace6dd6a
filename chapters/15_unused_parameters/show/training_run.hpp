#pragma once
// One rank's part of a training of the experts, which may go wrong: what it then leaves behind.
#include <optional>
#include <string>
#include <vector>

#include "03_network/optimizers.hpp"
#include "15_unused_parameters/desync.hpp"
#include "15_unused_parameters/find_unused.hpp"
#include "15_unused_parameters/join.hpp"
#include "15_unused_parameters/show/experts.hpp"

namespace ddp {

// What is done with parameters that a step does not use.
enum class Unused { refused, searched, fixed };

struct Training {
    Routes routes;  // of all ranks
    Unused unused = Unused::refused;
    bool joins = false;
    bool rebuilds_buckets = true;   // where that is possible at all
    bool sends_when_ready = false;  // each gradient by itself, in whatever order
    int width = 256;
    std::size_t cap_bytes = 256 << 10;
    double timeout_s = 30;  // of a wait in a kernel
};

// What is left of a rank's training, be it at its end or not.
struct RecordedState {
    StepState state;
    std::vector<StreamSpan> timeline;  // of the step that was watched
};

class TrainingRun {
  public:
    TrainingRun(Rank& rank, const Training& training, std::uint64_t seed, RecordedState& recorded);

    // All steps for which this rank has a batch, and then a barrier. Step `watched`, from 0, is
    // written down; so is what comes before the run's failure, if that is the step in which it
    // fails.
    void learn(int watched);
    // Forward, backward and the optimizer, on a batch that stays the same. Waits for the device.
    void repeat_step();

    // The largest difference of a parameter from that of one rank with all batches, as a part of
    // that parameter's largest number; on rank 0. All ranks call it together.
    double difference_from_one_rank();

  private:
    void plug_in();
    void step(const Batch& batch);
    void send_when_ready(Variable loss);
    void end();
    void mark(const std::string& what);
    void collect();

    Rank& rank_;
    const Training training_;
    const std::uint64_t seed_;
    RecordedState& recorded_;
    Device& device_;
    std::unique_ptr<Experts> model_;
    std::unique_ptr<Communicator> communicator_;
    DistributedDataParallel ddp_;
    std::optional<FindUnused> find_unused_;
    std::optional<StaticGraph> static_graph_;
    std::optional<Join> join_;
    StepRecorder recorder_;
    Sgd optimizer_;
    Tape tape_;
    StreamTrack compute_, communication_;
    bool is_watched_ = false;
    std::vector<Batch> batches_;
};

}  // namespace ddp
