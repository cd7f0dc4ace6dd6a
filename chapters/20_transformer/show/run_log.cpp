#include "20_transformer/show/run_log.hpp"

#include <iostream>
#include <stdexcept>

#include "common/report/csv.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Names of corpora are the only texts in the log, and they come from the command line.
std::string json_text(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            quoted += '\\';
        quoted += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
    return quoted + '"';
}

// A number with as many digits as it takes to read back the same one.
std::string json_number(double value) {
    return CsvCell(value).text;
}

}  // namespace

// ---- The file

void RunLog::start(const std::string& name, int steps_before) {
    if (path_.empty())
        return;
    file_.open(path_, steps_before > 0 ? std::ios::app : std::ios::trunc);
    if (!file_)
        throw std::runtime_error(unwritable(path_, "--csv"));
    if (steps_before > 0)
        line("");  // ends the line within which the run before was killed
    line("{\"event\":\"start\",\"name\":" + json_text(name) +
         ",\"step\":" + std::to_string(steps_before) + "}");
}

void RunLog::step(const StepReport& report) {
    line("{\"event\":\"step\",\"step\":" + std::to_string(report.step) + ",\"steps\":" +
         std::to_string(report.steps) + ",\"epoch\":" + std::to_string(report.epoch) +
         ",\"tokens\":" + std::to_string(report.tokens) + ",\"loss\":" + json_number(report.loss) +
         ",\"learning_rate\":" + json_number(report.learning_rate) +
         ",\"tokens_per_second\":" + json_number(report.tokens_per_second) + "}");
}

void RunLog::epoch(int epoch, int step, double validation_loss, std::optional<double> bleu) {
    line("{\"event\":\"epoch\",\"step\":" + std::to_string(step) + ",\"epoch\":" +
         std::to_string(epoch) + ",\"validation_loss\":" + json_number(validation_loss) +
         (bleu ? ",\"bleu\":" + json_number(*bleu) : "") + "}");
}

void RunLog::end() {
    line("{\"event\":\"end\"}");
}

void RunLog::line(const std::string& text) {
    if (!file_.is_open())
        return;
    file_ << text + '\n' << std::flush;
    if (!file_)
        throw std::runtime_error(unwritable(path_, "--csv"));
}

// ---- The terminal

TrainingView::TrainingView(Rank& rank, RunLog& log, std::string name,
                           const std::filesystem::path& csv)
    : rank_(rank),
      log_(log),
      name_(std::move(name)),
      csv_(rank.rank() == 0 ? csv : std::filesystem::path(),
           {"what", "step", "loss", "learning_rate", "tokens_per_second", "bleu"}) {}

void TrainingView::start(int steps_before) {
    if (rank_.rank() != 0)
        return;
    log_.start(name_, steps_before);
    shown_steps_ = steps_before;
    if (steps_before > 0)
        std::cout << "continues after step " << steps_before << std::endl;
}

void TrainingView::step(const StepReport& report) {
    if (rank_.rank() != 0)
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
    log_.step(report);
    csv_.row({"training", report.step, report.loss, report.learning_rate, report.tokens_per_second,
              0.0});
}

void TrainingView::epoch(int epoch, int step, double validation_loss, std::optional<double> bleu) {
    if (rank_.rank() != 0)
        return;
    progress_.reset();  // wipes its line
    std::cout << "epoch " << epoch << "  step " << step << "  loss " << format_fixed(loss_, 3)
              << "  validation " << format_fixed(validation_loss, 3) << "  "
              << format_count(static_cast<std::int64_t>(tokens_per_second_)) << " tokens/s"
              << (bleu ? "  BLEU " + format_fixed(*bleu, 1) : "") << std::endl;
    log_.epoch(epoch, step, validation_loss, bleu);
    csv_.row({"validation", step, validation_loss, 0.0, 0.0, bleu.value_or(0)});
}

void TrainingView::end() {
    if (rank_.rank() == 0)
        log_.end();
}

}  // namespace ddp
