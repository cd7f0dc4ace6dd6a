// One epoch on every rank at the same time:
//
//     rank 0   step | step | step | ...  | check | step | ...  | totals
//     rank 1   step | step | step | ...  | check | step | ...  | totals
//                  ^      ^                  ^                     ^
//                  gradients are averaged    |                     sums over all ranks
//                  inside each step          is the loss still a number, everywhere?
#include "15_overlap/training.hpp"

#include <stdexcept>

#include "03_network/cross_entropy.hpp"
#include "common/report/progress.hpp"

namespace ddp {

void require_batch(int batch, std::size_t pictures, int ranks) {
    const std::size_t most = pictures / static_cast<std::size_t>(ranks);
    if (static_cast<std::size_t>(batch) > most)
        throw OptionError("--batch " + std::to_string(batch) + " is more than the " +
                          std::to_string(most) + " samples that each of " + std::to_string(ranks) +
                          " ranks has: take a smaller batch or fewer ranks.");
}

DdpTrainer::DdpTrainer(Rank& rank, Device& device, Sequential& model, DistributedDataParallel& ddp,
                       Optimizer& optimizer)
    : rank_(rank),
      device_(device),
      model_(model),
      ddp_(ddp),
      gradients_(optimizer),
      metrics_(make_run_scoped<Metrics>(rank, device)),
      tape_(device) {}

// ---- A step

// Enqueues forward, backward with its all-reduces, and the optimizer, and marks them on a track.
void DdpTrainer::step(const Batch& batch) {
    const Variable logits = ddp_.forward(tape_.constant(batch.images));
    const Variable loss = cross_entropy(logits, batch.labels);
    track_.mark("forward loss");
    gradients_.begin_backward(loss);
    ddp_.backward(loss,
                  [&](Parameter& parameter) { track_.mark("backward to " + parameter.name); });
    track_.mark(waiting_for_gradients);
    gradients_.step_and_zero();
    track_.mark("optimizer");
    metrics_.add(loss.value(), logits.value(), batch.labels);
    tape_.clear();
}

// ---- An epoch

Metrics::Totals DdpTrainer::epoch(Loader& loader, const std::string& name) {
    constexpr int steps_between_checks = 100;  // a check waits for the device
    if (loader.batches() == 0)
        throw std::invalid_argument(
            "this rank has no batch to learn from: its share of the samples is smaller than one "
            "batch");
    std::optional<Progress> progress;
    if (rank_.rank() == 0)
        progress.emplace(name, loader.batches());
    model_.set_training(true);
    metrics_.reset();
    rank_.barrier();  // no kernel may wait for a rank that still allocates device memory
    const int steps_before = steps_;
    while (const std::optional<Batch> batch = loader.next()) {
        rank_.check();  // has another rank failed? Then its cause is thrown here
        if (hooks_.before_step)
            hooks_.before_step(*batch);
        if (make_step_)
            make_step_(*batch, [this](const Batch& its) { step(its); });
        else
            step(*batch);
        steps_++;
        if (hooks_.after_step)
            hooks_.after_step(steps_);
        if (progress)
            progress->advance();
        if (steps_ % steps_between_checks == 0)
            require_finite(metrics_.read(), steps_before);
    }
    const Metrics::Totals mine = metrics_.read();  // waits for the last step
    require_finite(mine, steps_before);
    return add_up(rank_, mine);
}

// Fails the run if any rank's loss is no number. After an all-reduce a NaN is soon on every rank:
// the rank on which it came first throws, and the barrier fails on the others with the same cause.
void DdpTrainer::require_finite(const Metrics::Totals& mine, int steps_before) {
    const std::vector<int> bad_steps = rank_.all_gather(mine.first_bad_step);  // -1: none
    // The earliest bad step of any rank, and of several ranks the lowest.
    int first = -1, first_rank = 0;
    for (int r = 0; r < rank_.world_size(); r++)
        if (const int step = bad_steps[static_cast<std::size_t>(r)];
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

// ---- The test

// Every rank tests every world_size-th sample. Unlike in training, no sample is left out where the
// samples do not divide: nothing is reduced here, so ranks may have different numbers of them.
Metrics::Totals DdpTrainer::test(Loader& loader) {
    model_.set_training(false);
    ddp_.share_buffers();  // BatchNorm's running averages differ from rank to rank until now
    metrics_.reset();
    // Products of other shapes follow: no kernel may wait for a rank that loads theirs.
    device_.stream().synchronize();
    rank_.barrier();
    std::vector<int> mine;
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
