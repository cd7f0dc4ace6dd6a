#pragma once
// One rank's training of the experts, and the state that it leaves even if it fails.
#include <optional>
#include <string>
#include <vector>

#include "03_network/layers/small_training.hpp"
#include "17_unused_parameters/desync.hpp"
#include "17_unused_parameters/find_unused.hpp"
#include "17_unused_parameters/join.hpp"
#include "17_unused_parameters/static_graph.hpp"
#include "17_unused_parameters/training/experts.hpp"

namespace ddp {

// Treatments of parameters that a step does not use: an error, FindUnused, StaticGraph.
enum class Unused { refused, searched, fixed };

struct Training {
    Routes routes;  // of all ranks
    Unused unused = Unused::refused;
    bool joins = false;
    bool rebuilds_buckets = true;   // after the first step; never with Unused::searched
    bool sends_when_ready = false;  // each gradient by itself, in the order of backward
    bool goes_past_ddp = false;     // forward and backward of the model itself: nothing is averaged
    int width = 256;
    std::size_t cap_bytes = 256 << 10;
    std::optional<double> timeout_s = {};  // bound of a wait in a kernel; not given: the job's
};

// The record of a rank's training, complete or up to its failure.
struct RecordedState {
    StepState state;
    std::vector<StreamSpan> timeline;  // the streams in the step that was watched
};

class TrainingRun {
  public:
    TrainingRun(Rank& rank, const Training& training, std::uint64_t seed, RecordedState& recorded);

    // Makes all steps for which this rank has a batch, then waits in a barrier. Records the
    // timeline of step `watched`, from 0 (-1: none), up to the failure if that step fails.
    void learn(int watched);
    // Makes one step on a batch that stays the same: forward, backward, optimizer. Waits for the
    // device.
    void repeat_step();

    // Returns, on rank 0, the largest difference of a parameter from the one that a single rank
    // with all batches learns, relative to that parameter's largest number; 0 on other ranks. All
    // ranks call it together.
    double difference_from_one_rank();

  private:
    void plug_in();
    void watch_map(DdpHooks& hooks);
    void step(const Batch& batch);
    void backward(Variable loss);
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
    SmallTraining steps_;
    StreamTrack compute_, communication_;
    bool is_watched_ = false;
    std::vector<Batch> batches_;
};

}  // namespace ddp
