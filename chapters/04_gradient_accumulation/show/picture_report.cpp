#include "04_gradient_accumulation/show/picture_report.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "03_network/models.hpp"
#include "04_gradient_accumulation/batch_models.hpp"
#include "common/report/bench.hpp"
#include "common/report/progress.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr double fixed_learning_rate = 0.05;

// The training in micro-batches of one size. It has its own device, so that only its own memory is
// measured.
class Training {
  public:
    Training(const LabelledImages& images, int size, Random random)
        : size_(size),
          model_(device_, images, picture_hidden, random),
          optimizer_(model_.parameters(), fixed_learning_rate),
          tape_(device_) {}

    void step(Samples batch) {
        const std::vector<MicroBatch> micro = micro_batches(batch, size_);
        const MeanLoss loss_of = [&](Tape& tape, Samples samples) {
            return model_.loss(tape, samples);
        };
        if (first_gradient_.empty()) {  // a look at it, in advance
            accumulate(tape_, micro, loss_of);
            keep_gradient();
            optimizer_.zero_gradients();
        }
        const Stopwatch watch;
        loss_ = learn_batch(tape_, optimizer_, micro, loss_of);
        device_.stream().synchronize();
        times_.push_back(watch.seconds());
    }

    int size() const { return size_; }
    double loss() const { return loss_; }  // of the last batch, before its step
    double step_s() const { return median(times_); }
    const std::vector<float>& first_gradient() const { return first_gradient_; }
    const PictureModel& model() const { return model_; }
    std::size_t measured_bytes() const { return device_.memory().peak_bytes; }

  private:
    // Copies the gradients of all parameters to the host, one behind the other.
    void keep_gradient() {
        for (const auto& parameter : model_.parameters()) {
            const std::vector<float> values = parameter->gradient().to_host();
            first_gradient_.insert(first_gradient_.end(), values.begin(), values.end());
        }
    }

    int size_;
    Device device_;
    PictureModel model_;
    PlainSgd optimizer_;
    Tape tape_;
    double loss_ = 0;
    std::vector<double> times_;
    std::vector<float> first_gradient_;
};

// The device memory of a training step in bytes, by use.
struct MemoryPlan {
    std::size_t parameters, gradients, optimizer, activations;
    std::size_t total() const { return parameters + gradients + optimizer + activations; }
};

// Predicts the memory of a step with so many pictures at a time.
MemoryPlan plan_memory(const PictureModel& model, int pictures) {
    std::size_t parameters = 0;
    for (const auto& parameter : model.parameters())
        parameters += parameter->value.bytes();
    return {parameters, parameters, 0,
            model.activation_bytes(pictures)};  // plain SGD keeps nothing
}

void show_memory(const std::vector<std::unique_ptr<Training>>& trainings) {
    // Device allocates blocks of 512 bytes, and a step has at most 24 tensors at a time.
    constexpr std::size_t rounding = 512 * 24;
    Table table("Memory of a step", {"pictures at a time", "parameters", "gradients", "optimizer",
                                     "activations", "predicted", "measured"});
    for (const auto& training : trainings) {
        const MemoryPlan plan = plan_memory(training->model(), training->size());
        const std::size_t measured = training->measured_bytes();
        table.row({std::to_string(training->size()), format_bytes(plan.parameters),
                   format_bytes(plan.gradients), format_bytes(plan.optimizer),
                   format_bytes(plan.activations), format_bytes(plan.total()),
                   format_bytes(measured)});
        if (measured < plan.total() || measured > plan.total() + rounding)
            throw std::runtime_error("a step with " + std::to_string(training->size()) +
                                     " pictures at a time should take " +
                                     std::to_string(plan.total()) + " bytes, and takes " +
                                     std::to_string(measured));
    }
    table.note("Measured: the most memory that tensors used at any moment, in blocks of 512 B.");
    table.note(
        "Plain SGD keeps nothing. Momentum would be as large as the parameters, Adam twice.");
    std::cout << table << "\n";
}

struct Difference {
    double fraction = 0;  // of the elements that differ
    double largest = 0;   // difference, relative to the largest element
};

// Compares two gradients of the same size.
Difference difference(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0, distance = 0, differing = 0;
    for (std::size_t i = 0; i < a.size(); i++) {
        largest = std::max<double>(largest, std::abs(a[i]));
        distance = std::max<double>(distance, std::abs(a[i] - b[i]));
        differing += a[i] != b[i];
    }
    return {differing / static_cast<double>(a.size()), distance / largest};
}

// Returns the number with one digit after the point and a power of ten: "4.8e-07".
std::string format_power(double value) {
    std::ostringstream text;
    text.precision(1);
    text << std::scientific << value;
    return text.str();
}

void show_results(const std::vector<std::unique_ptr<Training>>& trainings,
                  const PictureOptions& options) {
    // The error of a sum of n floats is at most n / 2^24 of its terms' sizes, and more of the sum
    // if terms of both signs cancel. The mistakes of this chapter cause errors of a tenth or more.
    constexpr double most = 1e-4;
    Table table(
        "One batch of " + std::to_string(options.batch) + " pictures, whole and in micro-batches",
        {"micro-batches", "pictures each", "gradients that differ", "by at most",
         "loss, step " + std::to_string(options.steps), "a step takes"});
    for (const auto& training : trainings) {
        const Difference from_first =
            difference(trainings[0]->first_gradient(), training->first_gradient());
        const auto count = split({0, options.batch}, training->size()).size();
        table.row({std::to_string(count), std::to_string(training->size()),
                   format_percent(from_first.fraction), format_power(from_first.largest),
                   format_fixed(training->loss(), 7), format_seconds(training->step_s())});
        if (!(from_first.largest <= most))
            throw std::runtime_error("the gradient in micro-batches of " +
                                     std::to_string(training->size()) + " is off by " +
                                     format_power(from_first.largest) +
                                     " of the largest element: more than roundings explain");
    }
    table.note("Gradients: those of the first step, compared with the first line's.");
    table.note("By at most: the largest difference, relative to the largest gradient.");
    std::cout << table;
}

}  // namespace

void add_picture_sizes(Options& command_line, PictureOptions& options) {
    command_line.add_int("--batch", options.batch, {1, 60'000}, "pictures for one step");
    command_line.add_ints("--micro-batch", options.micro_batch, {1, 60'000},
                          "pictures at a time; several sizes are compared");
}

PictureOptions checked(PictureOptions options, const LabelledImages& images) {
    require_batch(options.batch, images);
    if (options.micro_batch.empty()) {
        for (const int count : {1, 2, 4, 8, options.batch})
            options.micro_batch.push_back((options.batch + count - 1) / count);
        const auto rest = std::unique(options.micro_batch.begin(), options.micro_batch.end());
        options.micro_batch.erase(rest, options.micro_batch.end());
    }
    for (const int size : options.micro_batch)
        if (size > options.batch)
            throw OptionError("--micro-batch " + std::to_string(size) +
                              " is more than a batch of " + std::to_string(options.batch) +
                              " has: take a smaller one.");
    return options;
}

void show_pictures(const LabelledImages& images, const PictureOptions& options,
                   std::uint64_t seed) {
    const int batches = static_cast<int>(images.count()) / options.batch;
    std::vector<std::unique_ptr<Training>> trainings;
    for (const int size : options.micro_batch)
        trainings.push_back(std::make_unique<Training>(images, size, Random(seed)));
    {
        Progress progress("pictures", options.steps);
        for (int step = 0; step < options.steps; step++, progress.advance())
            for (const auto& training : trainings)  // in turns, so that a slow moment affects all
                training->step({step % batches * options.batch, options.batch});
    }
    show_memory(trainings);
    show_results(trainings, options);
}

}  // namespace ddp
