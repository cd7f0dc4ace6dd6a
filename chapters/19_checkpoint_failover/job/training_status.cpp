#include "19_checkpoint_failover/job/training_status.hpp"

#include "19_checkpoint_failover/job/status_line.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int steps_between_losses = 5;

}  // namespace

void TrainingStatus::report(const TrainingState& state) {
    if (rank_.rank() != 0 || !has_supervisor())
        return;
    report_progress(state.step);
    if (state.step % steps_between_losses == 0)
        report_loss(state);
}

void TrainingStatus::report_progress(int step) {
    done_[step % 2].record(device_.stream());
    done_[(step + 1) % 2].synchronize();
    if (since_report_.seconds() < 1)
        return;
    send_to_supervisor({0, "reached", step - 1, ""});
    since_report_.restart();
}

void TrainingStatus::report_loss(const TrainingState& state) {
    const Metrics::Totals now = trainer_.metrics().read();
    const double loss = (now.loss_sum - seen_.loss_sum) / (now.samples - seen_.samples);
    seen_ = now;
    send_to_supervisor(
        {0, "step", state.step, std::to_string(state.samples) + " " + format_fixed(loss, 4)});
    since_report_.restart();
}

}  // namespace ddp
