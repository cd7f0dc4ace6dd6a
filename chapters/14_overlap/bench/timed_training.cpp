#include "14_overlap/bench/timed_training.hpp"

#include <cstring>

#include "common/report/bench.hpp"

namespace ddp {
namespace {

constexpr int batches_in_memory = 16;  // a rank walks round these

// What a step's marks are called.
constexpr const char* forward_name = "forward";
constexpr const char* first_bucket = "backward to the first bucket";
constexpr const char* backward_name = "backward";
constexpr const char* waiting_name = "waiting";
constexpr const char* optimizer_name = "optimizer";

double sum_of(const std::vector<StreamSpan>& spans, const std::string& what) {
    double sum = 0;
    for (const StreamSpan& span : spans)
        if (what.empty() || span.what == what)
            sum += span.end_s - span.begin_s;
    return sum;
}

StepParts mean_of_ranks(Rank& rank, const StepParts& mine) {
    constexpr std::size_t parts = sizeof(StepParts) / sizeof(double);
    double sums[parts] = {};
    for (const std::string& each :
         rank.all_gather({reinterpret_cast<const char*>(&mine), sizeof mine})) {
        double theirs[parts];
        std::memcpy(theirs, each.data(), sizeof theirs);
        for (std::size_t i = 0; i < parts; i++)
            sums[i] += theirs[i] / rank.world_size();
    }
    StepParts mean;
    std::memcpy(&mean, sums, sizeof mean);
    return mean;
}

}  // namespace

TimedTraining::TimedTraining(Communicator& communicator, Device& device, Sequential& model,
                             Random& random, const TimedOptions& options)
    : rank_(communicator.rank()),
      device_(device),
      ddp_(communicator, device, model, options.ddp),
      optimizer_(model.parameters(), 0.05) {
    Shape shape{options.batch};
    shape.insert(shape.end(), options.sample.begin(), options.sample.end());
    for (int i = 0; i < batches_in_memory; i++) {
        std::vector<float> values(element_count(shape));
        for (float& value : values)
            value = random.uniform(0, 1);
        std::vector<int> labels(static_cast<std::size_t>(options.batch));
        for (int& label : labels)
            label = static_cast<int>(random.below(static_cast<std::size_t>(options.classes)));
        inputs_.emplace_back(device, shape, values);
        labels_.emplace_back(device, Shape{options.batch}, labels);
    }
    if (options.is_alone)
        alone_.emplace(ddp_);
    ddp_.set_track(&communication_);
}

StepParts TimedTraining::run(int steps) {
    rank_.barrier();
    const Stopwatch watch;
    for (int i = 0; i < steps; i++)
        step();
    device_.stream().synchronize();
    rank_.barrier();
    const double seconds = watch.seconds();
    StepParts mine = read();
    mine.whole = seconds;
    return mean_of_ranks(rank_, mine);
}

void TimedTraining::step() {
    const std::size_t batch = steps_++ % inputs_.size();
    compute_.begin();
    const Variable logits = ddp_.forward(tape_.constant(inputs_[batch]));
    const Variable loss = cross_entropy(logits, labels_[batch]);
    compute_.mark(forward_name);
    std::size_t missing =
        ddp_.gradients().plan().buckets[0].gradients.size();  // of the first bucket
    gradients_.begin_backward(loss);
    ddp_.backward(loss, [&](Parameter&) {
        compute_.mark(missing > 0 ? first_bucket : backward_name);
        missing -= missing > 0 ? 1 : 0;
    });
    compute_.mark(waiting_name);
    gradients_.step_and_zero();
    compute_.mark(optimizer_name);
    tape_.clear();
}

StepParts TimedTraining::read() {
    const std::vector<StreamSpan> compute = compute_.read(rank_.rank());
    StepParts parts;
    parts.left = sum_of(compute, backward_name);
    parts.backward = sum_of(compute, first_bucket) + parts.left;
    parts.compute =
        sum_of(compute, forward_name) + parts.backward + sum_of(compute, optimizer_name);
    parts.communication = sum_of(communication_.read(rank_.rank()), "");
    parts.exposed = sum_of(compute, waiting_name);
    return parts;
}

}  // namespace ddp
