#include "06_messages/show/stage_report.hpp"

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "06_messages/stage.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int layers = 4, width = 512, batch = 256;

// Divides a step over a number of ranks and into a number of micro-batches.
struct Schedule {
    std::string name;
    int stages, micro_batches;
};
const Schedule schedules[] = {{"one rank", 1, 1}, {"two, at once", 2, 1}, {"two, in four", 2, 4}};

// This rank's stage of a schedule; empty if the schedule has no stage for it.
struct ScheduledStage {
    ScheduledStage(Peers& peers, Device& device, const Schedule& schedule)
        : micro_batch_size(batch / schedule.micro_batches) {
        const int rank = peers.rank().rank(), stages = schedule.stages;
        if (rank >= stages)
            return;
        layers_of_stage = make_layers(device, layers * rank / stages, layers * (rank + 1) / stages,
                                      layers, width);
        stage = std::make_unique<Stage>(peers, device, *layers_of_stage, stages, width);
        stage->rehearse(micro_batch_size);  // each measurement begins with a barrier
    }
    double step(const Tensor& inputs, const Labels& labels) {
        if (!stage)
            return 0;
        const double loss = stage->accumulate(inputs, labels, micro_batch_size);
        for (const auto& parameter : layers_of_stage->parameters())
            parameter->clear_gradient();
        return loss;
    }

    const int micro_batch_size;
    std::unique_ptr<Sequential> layers_of_stage;
    std::unique_ptr<Stage> stage;
};

// The measurement of one step, over all ranks.
struct Step {
    std::vector<StreamSpan> spans;
    double loss = 0;

    double begin_s() const {
        return std::ranges::min_element(spans, {}, &StreamSpan::begin_s)->begin_s;
    }
    double seconds() const {
        return std::ranges::max_element(spans, {}, &StreamSpan::end_s)->end_s - begin_s();
    }
    // Returns the fraction of the step for which `rank` computes.
    double busy(int rank) const {
        double sum = 0;
        for (const StreamSpan& span : spans)
            if (span.rank == rank)
                sum += span.end_s - span.begin_s;
        return sum / seconds();
    }
};

Step measure(Rank& rank, ScheduledStage& scheduled, const Schedule& schedule, const Tensor& inputs,
             const Labels& labels) {
    rank.barrier();
    const double loss = scheduled.step(inputs, labels);
    const auto mine = scheduled.stage ? scheduled.stage->spans() : std::vector<StreamSpan>();
    return {gather(rank, mine), rank.broadcast(loss, schedule.stages - 1)};
}

// Returns the shortest step: other work of the machine makes a step longer, never shorter.
Step shortest_of(const std::vector<Step>& steps) {
    return *std::ranges::min_element(steps, {}, &Step::seconds);
}

// Returns a line with a character for each moment: 1 is forward of the first micro-batch, a its
// backward, a dot is idle.
std::string draw(const Step& step, int rank, double seconds_a_character) {
    std::string line(static_cast<std::size_t>(step.seconds() / seconds_a_character), '.');
    for (std::size_t i = 0; i < line.size(); i++) {
        const double time = step.begin_s() + (static_cast<double>(i) + 0.5) * seconds_a_character;
        for (const StreamSpan& each : step.spans)
            if (each.rank == rank && each.begin_s <= time && time < each.end_s)
                line[i] = static_cast<char>(each.what.back() +
                                            (each.what.starts_with("backward") ? 'a' - '1' : 0));
    }
    return line;
}

void print(const std::vector<Step>& steps) {
    Table table("A network of " + std::to_string(layers) +
                    " layers on one rank, and two layers on each of two ranks",
                {"schedule", "a step", "rank 0 busy", "rank 1 busy", "idle", "predicted", "loss"});
    Table picture("Who computes when", {"schedule", "rank", "time goes to the right"});
    const double longest_s = std::ranges::max_element(steps, {}, &Step::seconds)->seconds();
    for (std::size_t i = 0; i < steps.size(); i++) {
        const auto& [name, stages, micro_batches] = schedules[i];
        double busy = 0;
        for (int r = 0; r < stages; r++) {
            busy += steps[i].busy(r) / stages;
            picture.row({r == 0 ? name : "", std::to_string(r), draw(steps[i], r, longest_s / 72)});
        }
        table.row({name, format_seconds(steps[i].seconds()), format_percent(steps[i].busy(0)),
                   stages == 1 ? "n/a" : format_percent(steps[i].busy(1)), format_percent(1 - busy),
                   format_percent(predicted_idle(stages, micro_batches)),
                   format_fixed(steps[i].loss, 4)});
    }
    table.note("At once: a batch of " + std::to_string(batch) +
               ". In four: as four micro-batches. Each row is the shortest step of several. "
               "Predicted: if all layers took equally long.");
    picture.note("1 to 4: forward of a micro-batch; a to d: its backward; a dot: idle.");
    std::cout << table << "\n" << picture << "\n";
}

void write(const std::filesystem::path& csv, const std::vector<Step>& steps) {
    if (csv.empty())
        return;
    CsvWriter file(beside(csv, "timeline"), {"schedule", "rank", "name", "begin_ms", "end_ms"});
    for (std::size_t i = 0; i < steps.size(); i++)
        for (const StreamSpan& each : steps[i].spans)
            file.row({schedules[i].name, each.rank, each.what,
                      (each.begin_s - steps[i].begin_s()) * 1e3,
                      (each.end_s - steps[i].begin_s()) * 1e3});
}

}  // namespace

std::unique_ptr<Sequential> make_layers(Device& device, int first, int last, int all, int width) {
    auto layers_of_stage = std::make_unique<Sequential>("stage");
    for (int i = first; i < last; i++) {
        Random random(static_cast<std::uint64_t>(i) + 1);
        const std::string number = std::to_string(i + 1);
        layers_of_stage->add<Linear>("linear" + number, device, width, width, random);
        if (i + 1 < all)
            layers_of_stage->add<Relu>("relu" + number);
    }
    return layers_of_stage;
}

void show_model_parallelism(Rank& rank, const CommonOptions& common, int rounds) {
    rank.select_device();
    // All memory now, and until every rank has ended: allocating and freeing it may wait for
    // kernels of other ranks.
    const auto kept = std::make_shared<Device>(64 << 20);
    rank.keep_until_run_ends(kept);
    Device& device = *kept;
    Peers peers(rank, 8 << 20);
    Random random(7);
    std::vector<float> numbers(static_cast<std::size_t>(batch) * width);
    std::ranges::generate(numbers, [&] { return random.normal(); });
    std::vector<int> classes(batch);
    std::ranges::generate(classes, [&] { return static_cast<int>(random.below(width)); });
    const Tensor inputs(device, {batch, width}, numbers);
    const Labels labels(device, {batch}, classes);
    std::vector<ScheduledStage> stages;
    for (const Schedule& schedule : schedules)
        stages.emplace_back(peers, device, schedule);

    // The schedules take turns, so that a slow moment of the machine does not hit one of them only.
    std::vector<std::vector<Step>> steps(std::size(schedules));
    for (int round = 0; round <= rounds; round++)
        for (std::size_t i = 0; i < steps.size(); i++) {
            Step step = measure(rank, stages[i], schedules[i], inputs, labels);
            if (round > 0)  // the first one warms up
                steps[i].push_back(std::move(step));
        }
    std::vector<Step> shortest;
    for (const std::vector<Step>& each : steps)
        shortest.push_back(shortest_of(each));
    for (const Step& step : shortest)
        if (std::abs(step.loss - shortest[0].loss) > 1e-5)
            throw std::runtime_error("the network has the loss " + format_fixed(step.loss, 6) +
                                     " where it is split, and " +
                                     format_fixed(shortest[0].loss, 6) + " where it is not");
    if (rank.rank() == 0) {
        print(shortest);
        write(common.csv, shortest);
    }
}

}  // namespace ddp
