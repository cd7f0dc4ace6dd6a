#include "15_overlap/support/timed_training.hpp"

#include <algorithm>
#include <array>

#include "15_overlap/training.hpp"
#include "common/report/bench.hpp"
#include "common/report/stats.hpp"

namespace ddp {
namespace {

constexpr int batches_in_memory = 16;  // used in turn

// The names of a step's spans.
constexpr const char* forward_name = "forward";
constexpr const char* first_bucket = "backward to the first bucket";
constexpr const char* backward_name = "backward";
constexpr const char* optimizer_name = "optimizer";

double sum_of(const std::vector<StreamSpan>& spans, const std::string& what) {
    double sum = 0;
    for (const StreamSpan& span : spans)
        if (what.empty() || span.what == what)
            sum += span.end_s - span.begin_s;
    return sum;
}

constexpr std::array all_parts{&StepParts::whole, &StepParts::compute,       &StepParts::backward,
                               &StepParts::left,  &StepParts::communication, &StepParts::exposed};

StepParts mean_over_all(Rank& rank, const StepParts& mine) {
    StepParts mean;
    for (const StepParts& theirs : rank.all_gather(mine))
        for (double StepParts::*part : all_parts)
            mean.*part += theirs.*part / rank.world_size();
    return mean;
}

}  // namespace

double time_steps(Rank& rank, Stream& stream, int steps, const std::function<void()>& step) {
    rank.barrier();
    const Stopwatch watch;
    for (int i = 0; i < steps; i++)
        step();
    stream.synchronize();
    rank.barrier();
    return watch.seconds();
}

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
    const double seconds = time_steps(rank_, device_.stream(), steps, [this] { step(); });
    StepParts mine = read();
    mine.whole = seconds;
    return mean_over_all(rank_, mine);
}

std::vector<double> TimedTraining::bucket_bytes() const {
    std::vector<double> bytes;
    for (std::size_t i = 0; i < ddp_.gradients().plan().buckets.size(); i++)
        bytes.push_back(static_cast<double>(ddp_.gradients().bucket(i).bytes()));
    return bytes;
}

void TimedTraining::step() {
    const std::size_t batch = steps_++ % inputs_.size();
    const auto loss_of = [&](Tape& tape) {
        return cross_entropy(ddp_.forward(tape.constant(inputs_[batch])), labels_[batch]);
    };
    const auto backward = [&](Variable loss) {
        compute_.mark(forward_name);
        std::size_t missing =
            ddp_.gradients().plan().buckets[0].gradients.size();  // of the first bucket
        ddp_.backward(loss, [&](Parameter&) {
            compute_.mark(missing > 0 ? first_bucket : backward_name);
            missing -= missing > 0 ? 1 : 0;
        });
        compute_.mark(waiting_for_gradients);
    };
    compute_.begin();
    training_.step(loss_of, backward);
    compute_.mark(optimizer_name);
}

StepParts TimedTraining::read() {
    spans_ = compute_.read(rank_.rank());
    const std::vector<StreamSpan> communication = communication_.read(rank_.rank());
    StepParts parts;
    parts.left = sum_of(spans_, backward_name);
    parts.backward = sum_of(spans_, first_bucket) + parts.left;
    parts.compute = sum_of(spans_, forward_name) + parts.backward + sum_of(spans_, optimizer_name);
    parts.exposed = sum_of(spans_, waiting_for_gradients);
    parts.communication = sum_of(communication, "");
    spans_.insert(spans_.end(), communication.begin(), communication.end());
    return parts;
}

StepParts medians(std::span<const StepParts> rounds) {
    StepParts middle;
    for (double StepParts::*part : all_parts) {
        std::vector<double> values;
        for (const StepParts& round : rounds)
            values.push_back(round.*part);
        middle.*part = median(values);
    }
    return middle;
}

double hidden_share(std::span<const StepParts> off, std::span<const StepParts> on) {
    std::vector<double> shares;
    for (std::size_t round = 0; round < off.size(); round++)
        shares.push_back((off[round].whole - on[round].whole) /
                         std::min(off[round].communication, off[round].left));
    return median(shares);
}

LinkSpeed link_as_slow_as(double backward_s, double gradient_bytes, int ranks) {
    return {2.0 * (ranks - 1) / ranks * gradient_bytes / backward_s, 0};
}

}  // namespace ddp
