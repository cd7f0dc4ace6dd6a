#include "20_transformer/show/training_view.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "11_data_parallel/replica.hpp"
#include "20_transformer/words/scores.hpp"
#include "common/report/table.hpp"
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

void show_translations(const HeldOut& held_out, const std::string& title, std::size_t most) {
    std::vector<std::size_t> order(held_out.sources.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto is_right = [&](std::size_t i) {
        return held_out.expected[i] == held_out.translated[i];
    };
    if (order.size() > most) {
        std::stable_partition(order.begin(), order.end(), std::not_fn(is_right));
        order.resize(most);
    }
    Table table(title, {"source", "translation", "it is"});
    for (const std::size_t i : order)
        table.row({held_out.sources[i], held_out.translated[i], is_right(i) ? "right" : "wrong"});
    std::cout << table << std::endl;
}

void show_result(const TranslationResult& result, const TranslationData& data,
                 const HeldOut& held_out, int world_size) {
    Table table("The training, and " +
                    format_count(static_cast<std::int64_t>(held_out.sources.size())) +
                    " sentences that it has not seen",
                {"what", "how much"});
    table.row({"steps", format_count(result.steps)});
    table.row({"vocabulary", format_count(data.tokenizer->size(), "token")});
    if (result.tokens > 0) {  // a call after the end of the training makes no step
        table.row({"seconds of training", format_fixed(result.seconds, 1)});
        table.row({"tokens a second",
                   format_count(static_cast<std::int64_t>(static_cast<double>(result.tokens) /
                                                          std::max(result.seconds, 1e-9)))});
        table.row({"validation loss for a token", format_fixed(result.validation_loss, 4)});
    }
    const ErrorCounts errors = held_out.counted<ErrorCounts>();
    table.row({"translated without a mistake",
               std::to_string(errors.right_sentences) + " (" +
                   format_percent(static_cast<double>(errors.right_sentences) /
                                  static_cast<double>(errors.sentences)) +
                   ")"});
    if (data.corpus.name != "numerals") {  // whose translations are single words
        table.row({"BLEU", format_fixed(held_out.counted<BleuCounts>().score(), 1)});
        table.row({"chrF", format_fixed(held_out.counted<ChrfCounts>().score(), 1)});
    }
    table.row({"wrong characters", format_percent(errors.character_error_rate())});
    table.row({"seconds of translating", format_fixed(held_out.seconds, 1)});
    std::cout << table << text_of_equal_replicas(world_size, result.hash) << "\n";
}

}  // namespace ddp
