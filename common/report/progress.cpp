#include "common/report/progress.hpp"

#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>

#include "common/report/table.hpp"

namespace ddp {
namespace {

constexpr auto redraw_after = std::chrono::milliseconds(100);
constexpr std::size_t widest_bar = 40;
constexpr std::size_t narrowest_bar = 5;

// Returns the columns that a line may fill. It is asked before every drawing, since the reader may
// have resized the terminal. One column stays free: some terminals scroll when the last one is
// filled.
std::size_t usable_width(int terminal) {
    winsize size{};
    const bool known = ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col - 1u : 79u;
}

// Formats a time as 0:12, 3:05 or 1:02:45.
std::string clock_time(double seconds) {
    const std::int64_t whole = std::llround(std::clamp(seconds, 0.0, 3.6e8));
    const auto two_digits = [](std::int64_t number) {
        return (number < 10 ? "0" : "") + std::to_string(number);
    };
    const std::int64_t minutes = whole / 60;
    if (minutes < 60)
        return std::to_string(minutes) + ":" + two_digits(whole % 60);
    return std::to_string(minutes / 60) + ":" + two_digits(minutes % 60) + ":" +
           two_digits(whole % 60);
}

}  // namespace

std::string progress_line(const std::string& label, std::int64_t done, std::int64_t total,
                          double elapsed_s, std::size_t width) {
    if (total <= 0)
        return shortened(label + " " + std::to_string(done) + "  " + clock_time(elapsed_s), width);
    const double share =
        std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
    const std::string percent = std::to_string(static_cast<int>(100 * share));
    std::string numbers = std::string(4 - percent.size(), ' ') + percent + " %";
    if (share > 0)
        numbers += "  " + clock_time(elapsed_s / share - elapsed_s) + " left";

    const std::size_t taken = display_width(label) + std::string(" []").size() + numbers.size();
    if (width < taken + narrowest_bar)
        return shortened(label + numbers, width);
    const std::size_t bar = std::min(width - taken, widest_bar);
    const std::size_t filled = static_cast<std::size_t>(share * static_cast<double>(bar));
    return label + " [" + std::string(filled, '#') + std::string(bar - filled, '-') + "]" + numbers;
}

Progress::Progress(std::string label, std::int64_t total, int terminal)
    : label_(std::move(label)), total_(total), terminal_(terminal), draws_(isatty(terminal) == 1) {
    draw(start_);
}

Progress::~Progress() {
    if (draws_)
        put("");
}

void Progress::advance(std::int64_t steps) {
    done_ += steps;
    const Clock::time_point now = Clock::now();
    if (now - drawn_ >= redraw_after)
        draw(now);
}

void Progress::draw(Clock::time_point now) {
    if (!draws_)
        return;
    const double elapsed_s = std::chrono::duration<double>(now - start_).count();
    put(progress_line(label_, done_, total_, elapsed_s, usable_width(terminal_)));
    drawn_ = now;
}

// Replaces the line on the terminal. Blanks wipe the rest of the old one, which works on every
// terminal.
void Progress::put(const std::string& line) {
    const std::size_t width = display_width(line);
    const std::string blanks(drawn_width_ > width ? drawn_width_ - width : 0, ' ');
    const std::string text = "\r" + line + blanks + (line.empty() ? "\r" : "");
    drawn_width_ = width;
    if (write(terminal_, text.data(), text.size()) < 0)
        draws_ = false;  // the terminal is gone; the run goes on without a bar
}

}  // namespace ddp
