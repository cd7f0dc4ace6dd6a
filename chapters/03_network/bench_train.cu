// How fast one rank trains, against PyTorch in the same run: both do a round in turn, so that a
// machine that slows down slows both.
#include <csignal>
#include <iostream>
#include <optional>

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "03_network/pytorch.hpp"
#include "03_network/sgd_momentum.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct TrainOptions {
    std::string model = "both";
    int batch = 64;
    int rounds = 15;
    std::string pytorch = "auto";
};

// Our side: a model, and as many batches in memory as pytorch_train.py walks round.
class Training {
  public:
    Training(const std::string& name, int batch, std::uint64_t seed)
        : random_(seed),
          model_(make_model(name, device_, random_)),
          optimizer_(model_->parameters(), 0.05) {
        for (int i = 0; i < 16; i++) {
            std::vector<float> pixels(static_cast<std::size_t>(batch) * 784);
            for (float& pixel : pixels)
                pixel = random_.uniform(0, 1);
            std::vector<int> labels(static_cast<std::size_t>(batch));
            for (int& label : labels)
                label = static_cast<int>(random_.below(10));
            images_.emplace_back(device_, Shape{batch, 1, 28, 28}, pixels);
            labels_.emplace_back(device_, Shape{batch}, labels);
        }
    }

    // Seconds a step.
    double run(int steps) {
        const Stopwatch watch;
        for (int i = 0; i < steps; i++, step_++) {
            const std::size_t batch = step_ % images_.size();
            const Variable logits = model_->forward(tape_.constant(images_[batch]));
            tape_.backward(cross_entropy(logits, labels_[batch]));
            optimizer_.step();
            optimizer_.zero_gradients();
            tape_.clear();
        }
        device_.stream().synchronize();
        return watch.seconds() / steps;
    }

  private:
    Device device_;
    Random random_;
    std::unique_ptr<Sequential> model_;
    Sgd optimizer_;
    Tape tape_{device_};
    std::vector<Tensor> images_;
    std::vector<Labels> labels_;
    std::size_t step_ = 0;
};

class Report {
  public:
    explicit Report(const std::filesystem::path& csv)
        : csv_(csv, {"model", "ranks", "batch_per_rank", "samples_per_s", "step_ms", "compute_ms",
                     "comm_ms", "exposed_ms"}),
          table_("One rank trains (medians)",
                 {"model", "batch", "samples/s", "a step", "spread", "ours is"}) {}

    // One rank has no communication: all of a step is computing.
    void add(const std::string& model, int batch, const std::vector<double>& seconds,
             const std::string& ratio) {
        const double step = median(seconds);
        csv_.row({model, 1, batch, batch / step, step * 1e3, step * 1e3, 0.0, 0.0});
        table_.row({model, std::to_string(batch), format_fixed(batch / step, 0),
                    format_seconds(step), format_percent(spread(seconds)), ratio});
    }
    Table& table() { return table_; }

  private:
    CsvWriter csv_;
    Table table_;
};

void measure(const std::string& model, const TrainOptions& mine, const CommonOptions& common,
             Report& report) {
    const int steps = model == "mlp" ? 40 : 8;
    Training ours(model, mine.batch, common.seed);
    std::optional<Pytorch> theirs =
        mine.pytorch == "auto" ? Pytorch::find(model, mine.batch) : std::nullopt;
    std::vector<Measurement> variants{[&] { return ours.run(steps); }};
    if (theirs)
        variants.push_back([&] { return theirs->run(steps); });
    const auto seconds = interleave(variants, 1, common.quick ? 3 : mine.rounds);
    report.add(model, mine.batch, seconds[0], "");
    if (theirs) {
        const double ratio = median_ratio(seconds[1], seconds[0]);
        report.add(model + "_pytorch", mine.batch, seconds[1], format_fixed(ratio, 2) + " x");
        std::cout << theirs->version() << "\n";
    }
}

int run(int argc, char** argv) {
    TrainOptions mine;
    Options options("bench_train", "How fast one rank trains, against PyTorch in the same run.");
    options.add_choice("--model", mine.model, {"mlp", "cnn", "both"}, "what to train");
    options.add_int("--batch", mine.batch, {1, 60'000}, "pictures a step");
    options.add_int("--rounds", mine.rounds, {1, 10'000}, "how often to measure each in turn");
    options.add_choice("--pytorch", mine.pytorch, {"auto", "off"},
                       "measure PyTorch where a python3 has it, or not");
    options.refuse({"--ranks", "--processes", "--link", "--timeout", "--data", "--trace"},
                   "this bench computes on one device; ranks begin in chapter 04");
    const CommonOptions common = options.parse(argc, argv);
    std::signal(SIGPIPE, SIG_IGN);  // a PyTorch that has died is an error to report, not our end
    Report report(common.csv);
    for (const std::string model : {"mlp", "cnn"})
        if (mine.model == model || mine.model == "both")
            measure(model, mine, common, report);
    report.table().note(
        "PyTorch and this book take turns; the ratio is the median of all rounds'.");
    std::cout << report.table();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run(argc, argv); });
}
