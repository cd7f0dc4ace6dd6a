#include "06_messages/show/stage_report.hpp"

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "03_network/layers/relu.hpp"
#include "03_network/linear.hpp"
#include "06_messages/stage.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int layers = 4, width = 512, batch = 256;

struct Way {
    std::string name;
    int stages, micro_batches;
};
const Way ways[] = {{"one rank", 1, 1}, {"two, at once", 2, 1}, {"two, in four", 2, 4}};

// Layers first to last - 1 of the network. A layer begins alike wherever it is.
std::unique_ptr<Sequential> make_layers(Device& device, int first, int last) {
    auto part = std::make_unique<Sequential>("part");
    for (int i = first; i < last; i++) {
        Random random(static_cast<std::uint64_t>(i) + 1);
        const std::string number = std::to_string(i + 1);
        part->add<Linear>("linear" + number, device, width, width, random);
        if (i + 1 < layers)
            part->add<Relu>("relu" + number);
    }
    return part;
}

// What a rank needs to go one way; nothing if it takes no part.
struct Traveller {
    Traveller(Peers& peers, Device& device, const Way& way)
        : micro_batch(batch / way.micro_batches) {
        const int rank = peers.rank().rank();
        if (rank >= way.stages)
            return;
        part = make_layers(device, layers * rank / way.stages, layers * (rank + 1) / way.stages);
        stage = std::make_unique<Stage>(peers, device, *part, way.stages, width);
    }
    double step(const Tensor& inputs, const Labels& labels) {
        if (!stage)
            return 0;
        const double loss = stage->accumulate(inputs, labels, micro_batch);
        for (const auto& parameter : part->parameters())
            parameter->clear_gradient();
        return loss;
    }

    const int micro_batch;
    std::unique_ptr<Sequential> part;
    std::unique_ptr<Stage> stage;
};

// One step of all ranks.
struct Step {
    std::vector<StreamSpan> spans;
    double loss = 0;

    double begin_s() const {
        return std::ranges::min_element(spans, {}, &StreamSpan::begin_s)->begin_s;
    }
    double seconds() const {
        return std::ranges::max_element(spans, {}, &StreamSpan::end_s)->end_s - begin_s();
    }
    double busy(int rank) const {
        double sum = 0;
        for (const StreamSpan& span : spans)
            if (span.rank == rank)
                sum += span.end_s - span.begin_s;
        return sum / seconds();
    }
};

Step measure(Rank& rank, Traveller& traveller, const Way& way, const Tensor& inputs,
             const Labels& labels) {
    rank.barrier();
    const double loss = traveller.step(inputs, labels);
    const auto mine = traveller.stage ? traveller.stage->spans() : std::vector<StreamSpan>();
    return {gather(rank, mine), std::stod(rank.broadcast(std::to_string(loss), way.stages - 1))};
}

// Whatever else the machine has to do makes a step longer, and never shorter.
Step shortest_of(const std::vector<Step>& steps) {
    return *std::ranges::min_element(steps, {}, &Step::seconds);
}

// A character for each moment: 1 is forward of the first micro-batch, a its backward.
std::string drawn(const Step& step, int rank, double seconds_a_character) {
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
                {"way", "a step", "rank 0 busy", "rank 1 busy", "idle", "predicted", "loss"});
    Table picture("Who computes when", {"way", "rank", "time goes to the right"});
    const double longest_s = std::ranges::max_element(steps, {}, &Step::seconds)->seconds();
    for (std::size_t i = 0; i < steps.size(); i++) {
        const auto& [name, stages, micro_batches] = ways[i];
        double busy = 0;
        for (int r = 0; r < stages; r++) {
            busy += steps[i].busy(r) / stages;
            picture.row(
                {r == 0 ? name : "", std::to_string(r), drawn(steps[i], r, longest_s / 72)});
        }
        table.row({name, format_seconds(steps[i].seconds()), format_percent(steps[i].busy(0)),
                   stages == 1 ? "n/a" : format_percent(steps[i].busy(1)), format_percent(1 - busy),
                   format_percent(predicted_idle(stages, micro_batches)),
                   format_fixed(steps[i].loss, 4)});
    }
    table.note("At once: a batch of " + std::to_string(batch) +
               ". In four: as four micro-batches. The shortest step of each; predicted: if all "
               "parts took equally long.");
    picture.note("1 to 4: forward of a micro-batch; a to d: its backward; a dot: idle.");
    std::cout << table << "\n" << picture << "\n";
}

void write(const std::filesystem::path& csv, const std::vector<Step>& steps) {
    if (csv.empty())
        return;
    CsvWriter file(beside(csv, "timeline"), {"way", "rank", "name", "begin_ms", "end_ms"});
    for (std::size_t i = 0; i < steps.size(); i++)
        for (const StreamSpan& each : steps[i].spans)
            file.row({ways[i].name, each.rank, each.what, (each.begin_s - steps[i].begin_s()) * 1e3,
                      (each.end_s - steps[i].begin_s()) * 1e3});
}

}  // namespace

void show_model_parallelism(Rank& rank, const CommonOptions& common, int rounds) {
    rank.select_device();
    Device device(64 << 20);  // all of it now: who allocates while another waits may wait, too
    Peers peers(rank, 8 << 20);
    Random random(7);
    std::vector<float> numbers(static_cast<std::size_t>(batch) * width);
    std::ranges::generate(numbers, [&] { return random.normal(); });
    std::vector<int> classes(batch);
    std::ranges::generate(classes, [&] { return static_cast<int>(random.below(width)); });
    const Tensor inputs(device, {batch, width}, numbers);
    const Labels labels(device, {batch}, classes);
    std::vector<Traveller> travellers;
    for (const Way& way : ways)
        travellers.emplace_back(peers, device, way);

    std::vector<std::vector<Step>> steps(std::size(ways));
    for (int round = 0; round <= rounds; round++)
        for (std::size_t i = 0; i < steps.size(); i++) {
            Step step = measure(rank, travellers[i], ways[i], inputs, labels);
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
