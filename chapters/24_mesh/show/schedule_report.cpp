#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "03_network/layers/initialisers.hpp"
#include "06_messages/stage.hpp"
#include "11_data_parallel/replica.hpp"
#include "24_mesh/pipeline.hpp"
#include "24_mesh/show/reports.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr double forward_s = 0.010, backward_s = 0.020;

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// A stage whose layers sleep, and what it did when.
class SleepingStage {
  public:
    SleepingStage(Rank& rank, Device& device, Communicator& stages)
        : rank_(rank),
          device_(device),
          learned_(std::make_shared<Parameter>("learned", constant(device, {1}, 0.0f))),
          pipeline_(stages, device, {1}, learned_,
                    [this](Tape& tape, std::optional<Variable> input, int micro_batch) {
                        return layers(tape, input, micro_batch);
                    }) {}

    std::vector<StreamSpan> step(Schedule schedule, int micro_batches) {
        spans_.clear();
        rank_.barrier();
        pipeline_.step(schedule, micro_batches, {});
        learned_->clear_gradient();
        return spans_;
    }
    int max_in_flight() const { return pipeline_.max_in_flight(); }

  private:
    Variable layers(Tape& tape, std::optional<Variable> input, int micro_batch) {
        const Variable x = input ? *input : tape.parameter(learned_);
        sleep("forward", micro_batch, forward_s);
        return tape.record("layers", constant(device_, {1}, 1.0f), {x, tape.parameter(learned_)},
                           [this, micro_batch](const Tensor&, Tape::InputGradients& inputs) {
                               sleep("backward", micro_batch, backward_s);
                               for (const std::size_t input : {0, 1}) {
                                   Tensor gradient = inputs.target(input).tensor;
                                   fill(gradient, 0.0f);
                               }
                           });
    }
    // Sleeps once the device has what the neighbour sends.
    void sleep(const std::string& what, int micro_batch, double seconds) {
        device_.stream().synchronize();
        const double begin = now_s();
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        spans_.push_back({rank_.rank(), "compute", what + " " + std::to_string(micro_batch + 1),
                          begin, now_s()});
    }

    Rank& rank_;
    Device& device_;
    const std::shared_ptr<Parameter> learned_;
    Pipeline pipeline_;
    std::vector<StreamSpan> spans_;
};

struct Measured {
    std::string name;
    int micro_batches;
    std::vector<StreamSpan> spans;  // of all ranks
    int max_in_flight;              // on rank 0

    double begin_s() const {
        return std::ranges::min_element(spans, {}, &StreamSpan::begin_s)->begin_s;
    }
    double seconds() const {
        return std::ranges::max_element(spans, {}, &StreamSpan::end_s)->end_s - begin_s();
    }
    double idle(int stages) const {
        double busy = 0;
        for (const StreamSpan& span : spans)
            busy += span.end_s - span.begin_s;
        return 1 - busy / (stages * seconds());
    }
};

}  // namespace

void show_schedules(Rank& rank, const std::vector<int>& micro_batch_counts,
                    const std::filesystem::path& csv) {
    std::vector<Measured> all;
    rank.run_part([&] {
        auto& device = make_run_scoped<Device>(rank, std::size_t{1} << 20);
        const auto stages = make_communicator(
            "native", rank, Pipeline::arena_bytes({1}, 8) + 4 * SharedArena::unit);
        for (const auto& [name, schedule] : std::initializer_list<std::pair<const char*, Schedule>>{
                 {"GPipe", Schedule::gpipe}, {"1F1B", Schedule::one_f_one_b}})
            for (const int micro_batches : micro_batch_counts) {
                SleepingStage stage(rank, device, *stages);
                stage.step(schedule, micro_batches);  // the first step loads kernels
                const auto spans = gather(rank, stage.step(schedule, micro_batches));
                all.push_back({name, micro_batches, spans, stage.max_in_flight()});
            }
        rank.barrier();
    });
    if (rank.rank() != 0)
        return;
    const int stages = rank.world_size();
    Table table("A pipeline of " + std::to_string(stages) + " stages that sleep",
                {"schedule", "micro-batches", "a step", "idle", "predicted", "kept by rank 0"});
    CsvWriter file(csv, {"schedule", "micro_batches", "rank", "what", "begin_s", "end_s"});
    for (const Measured& each : all) {
        table.row({each.name, std::to_string(each.micro_batches), format_seconds(each.seconds()),
                   format_percent(each.idle(stages)),
                   format_percent(predicted_idle(stages, each.micro_batches)),
                   std::to_string(each.max_in_flight)});
        for (const StreamSpan& span : each.spans)
            file.row({each.name, each.micro_batches, span.rank, span.what,
                      span.begin_s - each.begin_s(), span.end_s - each.begin_s()});
    }
    table.note("kept: micro-batches whose activations are there at the same time.");
    std::cout << table << "\n";
}

}  // namespace ddp
