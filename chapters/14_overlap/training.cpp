#include "14_overlap/training.hpp"

#include <stdexcept>

#include "03_network/cross_entropy.hpp"
#include "14_overlap/show/timeline_report.hpp"
#include "common/report/progress.hpp"

namespace ddp {

DdpTrainer::DdpTrainer(Rank& rank, Device& device, Sequential& model, DistributedDataParallel& ddp,
                       Optimizer& optimizer)
    : rank_(rank),
      device_(device),
      model_(model),
      ddp_(ddp),
      gradients_(optimizer),
      metrics_(make_run_scoped<Metrics>(rank, device)),
      tape_(device) {}

void DdpTrainer::step(const Batch& batch) {
    const auto mark = [this](const std::string& what) {
        if (compute_ != nullptr)
            compute_->mark(what);
    };
    const Variable logits = ddp_.forward(tape_.constant(batch.images));
    const Variable loss = cross_entropy(logits, batch.labels);
    mark("forward loss");
    gradients_.begin_backward(loss);
    ddp_.backward(loss, [&](Parameter& parameter) { mark("backward to " + parameter.name); });
    mark(waiting_for_gradients);
    gradients_.step_and_zero();
    mark("optimizer");
    metrics_.add(loss.value(), logits.value(), batch.labels);
    tape_.clear();
}

std::vector<StreamSpan> DdpTrainer::watched_step(const Batch& batch) {
    StreamTrack compute("compute", device_.stream()),
        communication("communication", ddp_.communication_stream());
    compute_ = &compute;
    ddp_.set_track(&communication);
    model_.observe([&](const Module& layer) { compute.mark("forward " + layer.name()); });
    compute.begin();
    step(batch);
    model_.observe({});
    ddp_.set_track(nullptr);
    compute_ = nullptr;
    std::vector<StreamSpan> mine = compute.read(rank_.rank());
    for (StreamSpan& span : communication.read(rank_.rank()))
        mine.push_back(std::move(span));
    return gather(rank_, mine);
}

Metrics::Totals DdpTrainer::epoch(Loader& loader, const std::string& name) {
    constexpr int steps_between_checks = 100;  // a check waits for the device
    if (loader.batches() == 0)
        throw std::invalid_argument(
            "this rank has no batch to learn from: its part of the samples is smaller than one");
    std::optional<Progress> progress;
    if (rank_.rank() == 0)
        progress.emplace(name, loader.batches());
    model_.set_training(true);
    metrics_.reset();
    rank_.barrier();  // nobody's kernel waits while another rank still asks the device for memory
    const int steps_before = steps_;
    while (const std::optional<Batch> batch = loader.next()) {
        rank_.check();
        if (hooks_.before_step)
            hooks_.before_step(*batch);
        if (steps_ == watched_) {
            timeline_ = watched_step(*batch);
        } else if (steps_ == watched_ + 1) {
            const bool overlaps = ddp_.overlaps();
            ddp_.set_overlap(false);
            without_overlap_ = watched_step(*batch);
            ddp_.set_overlap(overlaps);
        } else {
            step(*batch);
        }
        steps_++;
        if (hooks_.after_step)
            hooks_.after_step(steps_);
        if (progress)
            progress->advance();
        if (steps_ % steps_between_checks == 0)
            require_finite(metrics_.read(), steps_before);
    }
    const Metrics::Totals mine = metrics_.read();
    require_finite(mine, steps_before);
    return add_up(rank_, mine);
}

// What is no number on one rank is soon none on all: the one that was first says so, and the others
// hear of it.
void DdpTrainer::require_finite(const Metrics::Totals& mine, int steps_before) {
    const std::vector<std::string> bad_steps =
        rank_.all_gather(std::to_string(mine.first_bad_step));
    int first = -1, first_rank = 0;
    for (int r = 0; r < rank_.world_size(); r++)
        if (const int step = std::stoi(bad_steps[static_cast<std::size_t>(r)]);
            step >= 0 && (first < 0 || step < first)) {
            first = step;
            first_rank = r;
        }
    if (first < 0)
        return;
    if (rank_.rank() == first_rank)
        throw std::runtime_error("the loss is no longer a number at step " +
                                 std::to_string(steps_before + first + 1) +
                                 ": the steps are too long; try a smaller --learning-rate");
    rank_.barrier();
}

Metrics::Totals DdpTrainer::test(Loader& loader) {
    model_.set_training(false);
    ddp_.share_buffers();
    metrics_.reset();
    std::vector<int> mine;  // all of them, whether or not they divide
    for (int i = rank_.rank(); i < loader.samples(); i += rank_.world_size())
        mine.push_back(i);
    loader.start_epoch(std::move(mine));
    while (const std::optional<Batch> batch = loader.next()) {
        rank_.check();
        const Variable logits = model_.forward(tape_.constant(batch->images));
        metrics_.add(cross_entropy(logits, batch->labels).value(), logits.value(), batch->labels);
        tape_.clear();
    }
    return add_up(rank_, metrics_.read());
}

}  // namespace ddp
