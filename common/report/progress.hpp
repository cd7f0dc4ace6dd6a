#pragma once
// A line on the terminal that says how far a run is and when it will end:
//
//     epoch 2 [##########--------------------]  33 %  0:12 left
//
// It goes to stderr, and only where that is a terminal: files and pipes never see it.
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ddp {

// The line itself, at most `width` columns wide; what does not fit is left out, the bar first. With
// a `total` of 0, which stands for "unknown", it shows the count and the time that passed.
std::string progress_line(const std::string& label, std::int64_t done, std::int64_t total,
                          double elapsed_s, std::size_t width);

// For one thread: that of the rank that prints.
class Progress {
  public:
    // `terminal` is the file descriptor to draw on.
    Progress(std::string label, std::int64_t total, int terminal = STDERR_FILENO);

    // Wipes the line, so that what is printed next starts on a clean one.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // Counts `steps` more as done. Draws at most ten times a second.
    void advance(std::int64_t steps = 1);

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
