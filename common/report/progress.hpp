#pragma once
// A line on the terminal that shows how far a run has come and when it will end:
//
//     epoch 2 [##########--------------------]  33 %  0:12 left
//
// It is written to stderr, and only if that is a terminal: it never appears in files and pipes.
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ddp {

// Returns the line, at most `width` columns wide. If it does not fit, the bar is left out first.
// With a `total` of 0, which stands for "unknown", it shows the count and the time that has passed.
std::string progress_line(const std::string& label, std::int64_t done, std::int64_t total,
                          double elapsed_s, std::size_t width);

// The line on the terminal. Only one thread may use it: that of the rank that prints.
class Progress {
  public:
    // Draws the line at 0 steps. `terminal` is a file descriptor.
    Progress(std::string label, std::int64_t total, int terminal = STDERR_FILENO);

    // Wipes the line, so that what is printed next starts on a clean one.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // Adds `steps` to those done. Draws at most ten times a second.
    void advance(std::int64_t steps = 1);

    // Replaces the label, from the next drawing on: it may say how fast the run is.
    void set_label(std::string label) { label_ = std::move(label); }

  private:
    using Clock = std::chrono::steady_clock;

    void draw(Clock::time_point now);
    void put(const std::string& line);

    std::string label_;
    std::int64_t total_;
    int terminal_;
    bool draws_;
    std::int64_t done_ = 0;
    Clock::time_point start_ = Clock::now();
    Clock::time_point drawn_ = start_;
    std::size_t drawn_width_ = 0;  // columns that the line on the terminal takes
};

}  // namespace ddp
