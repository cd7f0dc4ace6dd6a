#include "20_transformer/support/training_view.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "11_data_parallel/replica.hpp"
#include "20_transformer/decoder_only.hpp"
#include "20_transformer/words/scores.hpp"
#include "20_transformer/words/utf8.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

using LogEntry = nlohmann::ordered_json;

// Returns it as one line. The name of a corpus is that of a file, which may be no UTF-8.
std::string line_of(const LogEntry& entry) {
    return entry.dump(-1, ' ', false, LogEntry::error_handler_t::replace);
}

// Returns what each token spells. A token may be one byte of a letter, which is no text alone.
std::vector<std::string> spellings(const Tokenizer& tokenizer, const std::vector<int>& tokens) {
    std::vector<std::string> texts;
    for (const int token : tokens) {
        const std::string text = tokenizer.decode({token});
        texts.push_back(is_utf8(text) ? text : "·");
    }
    texts.push_back("(end)");
    return texts;
}

// Returns the values of the last node on the tape that has this label.
const Tensor& value_on(const Tape& tape, const std::string& label) {
    for (auto node = tape.nodes().rbegin(); node != tape.nodes().rend(); ++node)
        if (node->operation == label)
            return node->value;
    throw std::logic_error("nothing on the tape is called " + label);
}

// Writes how much each token of the translation takes of each token of the sentence.
void write_attention_of(CsvWriter& writer, TranslationModel& model, const Tokenizer& tokenizer,
                        const std::string& sentence) {
    const std::vector<int> tokens = tokenizer.encode(sentence);
    const std::vector<TokenPair> pairs{{tokens, translate(model, {tokens}).front()}};
    // A forward of the whole pair leaves the weights on the tape.
    const TokenBatch batch = BatchPlan(pairs, 1, 0, 0).batch(0, 0, 1);
    Device& device = model.parameters().front()->value.device();
    Tape tape(device);
    const DeviceBatch on_device = to_device(device, batch_for(model, batch));
    model.forward(tape, on_device.source, on_device.target_in);
    // A model that is only a decoder has the source's tokens in front of the target's.
    const auto& [layers, attention, is_behind] =
        model.options().decoder_only ? std::tuple(2 * model.options().layers, ".self_attn", true)
                                     : std::tuple(model.options().layers, ".multihead_attn", false);
    const Tensor last =  // [1, heads, queries, keys]
        value_on(tape, "decoder.layers." + std::to_string(layers - 1) + attention + ".weights");
    const std::vector<float> weights = last.to_host();
    const auto heads = static_cast<std::size_t>(last.dim(1)),
               queries = static_cast<std::size_t>(last.dim(2)),
               keys = static_cast<std::size_t>(last.dim(3));
    const std::vector<std::string> source = spellings(tokenizer, pairs[0].source),
                                   target = spellings(tokenizer, pairs[0].target);
    const std::size_t first = is_behind ? source.size() : 0;
    for (std::size_t query = 0; query < target.size(); query++)
        for (std::size_t key = 0; key < source.size(); key++) {
            double mean = 0;
            for (std::size_t head = 0; head < heads; head++)
                mean += weights[(head * queries + first + query) * keys + key] /
                        static_cast<double>(heads);
            writer.row({sentence, target[query], source[key], query, key, mean});
        }
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

void write_attention(const std::filesystem::path& csv, TranslationModel& model,
                     const Tokenizer& tokenizer, const std::vector<std::string>& sentences) {
    if (csv.empty())
        return;
    CsvWriter writer(beside(csv, "attention"),
                     {"sentence", "target", "source", "row", "column", "weight"});
    for (std::size_t i = 0; i < std::min<std::size_t>(3, sentences.size()); i++)
        write_attention_of(writer, model, tokenizer, sentences[i]);
}

}  // namespace ddp
