#pragma once
// The record of a training while it runs: out/run.jsonl, which `./book watch` draws, and the line
// on the terminal.
#include <filesystem>
#include <fstream>
#include <optional>

#include "20_transformer/translation_training.hpp"
#include "common/report/csv.hpp"
#include "common/report/progress.hpp"

namespace ddp {

// Writes one JSON object in each line: a "start", then steps and epochs, then an "end". Each line
// is whole as soon as it is there.
class RunLog {
  public:
    // With an empty path nothing is written.
    explicit RunLog(std::filesystem::path path) : path_(std::move(path)) {}

    // Begins the file, or continues it where the training continues. Throws std::runtime_error,
    // with path and reason, if it cannot be written.
    void start(const std::string& name, int steps_before);
    void step(const StepReport& report);
    // `bleu` is that of the held-out sentences, where it is measured after each epoch.
    void epoch(int epoch, int step, double validation_loss, std::optional<double> bleu = {});
    void end();

  private:
    void line(const std::string& text);

    const std::filesystem::path path_;
    std::ofstream file_;
};

// Shows a training on rank 0: the log, the line on the terminal and a line for each epoch. The
// other ranks show nothing.
class TrainingView {
  public:
    // `rank` and `log` must outlive this object. Rank 0 also writes a row for each report to `csv`,
    // unless that is empty.
    TrainingView(Rank& rank, RunLog& log, std::string name, const std::filesystem::path& csv);

    void start(int steps_before);
    void step(const StepReport& report);
    void epoch(int epoch, int step, double validation_loss, std::optional<double> bleu = {});
    void end();

  private:
    Rank& rank_;
    RunLog& log_;
    const std::string name_;
    CsvWriter csv_;
    std::optional<Progress> progress_;
    int shown_steps_ = 0;
    double loss_ = 0, tokens_per_second_ = 0;
};

}  // namespace ddp
