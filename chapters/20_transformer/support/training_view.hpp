#pragma once
// A training as rank 0 shows it. While it runs: a line per epoch on the terminal, the table of the
// run, and out/run.jsonl, which `./book watch` draws. At its end: translations, results, and
// where the model looks: its last layer's attention to the source.
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "20_transformer/translate.hpp"
#include "20_transformer/translation_training.hpp"
#include "common/report/csv.hpp"
#include "common/report/progress.hpp"

namespace ddp {

class TrainingView {
  public:
    // Writes the table `csv`, and the log run.jsonl beside it; neither if the path is empty. The
    // ranks but 0 show and write nothing. `rank` must outlive this object.
    TrainingView(const Rank& rank, std::string name, const std::filesystem::path& csv);

    // Begins the log, or continues it where the training continues: a JSON object in each line, a
    // "start", then steps and epochs, then an "end". Each line is whole as soon as it is there.
    // Throws std::runtime_error, with path and reason, if it cannot be written.
    void start(int steps_before);
    void step(const StepReport& report);
    // `bleu` is that of the held-out sentences, where it is measured after each epoch.
    void epoch(int epoch, int step, double validation_loss, std::optional<double> bleu = {});
    void end();

  private:
    void log(const std::string& line);

    const bool is_shown_;
    const std::string name_;
    const std::filesystem::path log_path_;
    std::ofstream log_;
    CsvWriter csv_;
    std::optional<Progress> progress_;
    int shown_steps_ = 0;
    double loss_ = 0, tokens_per_second_ = 0;
};

// Prints the sentences with their translations; if there are more than `most`, so many of them, the
// wrong ones first.
void show_translations(const HeldOut& held_out, const std::string& title, std::size_t most);

// Prints how the training went, and how many held-out sentences are right.
void show_result(const TranslationResult& result, const TranslationData& data,
                 const HeldOut& held_out, int world_size);

// Translates the first three sentences, and writes to the CSV file beside `csv`, if that is not
// empty, how much each token of a translation takes of each token of its source, in the step that
// chooses it: the mean over the heads. `model` is in evaluation.
void write_attention(const std::filesystem::path& csv, TranslationModel& model,
                     const Tokenizer& tokenizer, const std::vector<std::string>& sentences);

}  // namespace ddp
