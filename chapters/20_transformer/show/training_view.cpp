#include "20_transformer/show/training_view.hpp"

#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/report/units.hpp"

namespace ddp {
namespace {

using LogEntry = nlohmann::ordered_json;

// Returns it as one line. The name of a corpus is that of a file, which may be no UTF-8.
std::string line_of(const LogEntry& entry) {
    return entry.dump(-1, ' ', false, LogEntry::error_handler_t::replace);
}

}  // namespace

TrainingView::TrainingView(const Rank& rank, std::string name, const std::filesystem::path& csv)
    : is_shown_(rank.rank() == 0),
      name_(std::move(name)),
      log_path_(is_shown_ && !csv.empty() ? csv.parent_path() / "run.jsonl" : ""),
      csv_(is_shown_ ? csv : "",
           {"what", "step", "loss", "learning_rate", "tokens_per_second", "bleu"}) {}

void TrainingView::start(int steps_before) {
    if (!is_shown_)
        return;
    if (!log_path_.empty()) {
        log_.open(log_path_, steps_before > 0 ? std::ios::app : std::ios::trunc);
        if (!log_)
            throw std::runtime_error(unwritable(log_path_, "--csv"));
    }
    shown_steps_ = steps_before;
    if (steps_before > 0) {
        log("");  // ends the line within which the run before was killed
        std::cout << "continues after step " << steps_before << std::endl;
    }
    log(line_of({{"event", "start"}, {"name", name_}, {"step", steps_before}}));
}

void TrainingView::step(const StepReport& report) {
    if (!is_shown_)
        return;
    if (!progress_)  // only now is it known how many steps there are
        progress_.emplace("", report.steps - shown_steps_);
    progress_->set_label(
        "epoch " + std::to_string(report.epoch) + "  loss " + format_fixed(report.loss, 3) + "  " +
        format_count(static_cast<std::int64_t>(report.tokens_per_second)) + " tokens/s");
    progress_->advance(report.step - shown_steps_);
    shown_steps_ = report.step;
    loss_ = report.loss;
    tokens_per_second_ = report.tokens_per_second;
    log(line_of({{"event", "step"},
                 {"step", report.step},
                 {"steps", report.steps},
                 {"epoch", report.epoch},
                 {"tokens", report.tokens},
                 {"loss", report.loss},
                 {"learning_rate", report.learning_rate},
                 {"tokens_per_second", report.tokens_per_second}}));
    csv_.row({"training", report.step, report.loss, report.learning_rate, report.tokens_per_second,
              0.0});
}

void TrainingView::epoch(int epoch, int step, double validation_loss, std::optional<double> bleu) {
    if (!is_shown_)
        return;
    progress_.reset();  // wipes its line
    std::cout << "epoch " << epoch << "  step " << step << "  loss " << format_fixed(loss_, 3)
              << "  validation " << format_fixed(validation_loss, 3) << "  "
              << format_count(static_cast<std::int64_t>(tokens_per_second_)) << " tokens/s"
              << (bleu ? "  BLEU " + format_fixed(*bleu, 1) : "") << std::endl;
    LogEntry entry{
        {"event", "epoch"}, {"step", step}, {"epoch", epoch}, {"validation_loss", validation_loss}};
    if (bleu)
        entry["bleu"] = *bleu;
    log(line_of(entry));
    csv_.row({"validation", step, validation_loss, 0.0, 0.0, bleu.value_or(0)});
}

void TrainingView::end() {
    if (is_shown_)
        log(line_of({{"event", "end"}}));
}

void TrainingView::log(const std::string& line) {
    if (!log_.is_open())
        return;
    log_ << line + '\n' << std::flush;
    if (!log_)
        throw std::runtime_error(unwritable(log_path_, "--csv"));
}

}  // namespace ddp
