// The exercise cost_line: times that are made from a known line, some of them disturbed.
#include "exercises/06_messages/cost_line.hpp"

#include <cmath>
#include <functional>

#include "common/report/units.hpp"
#include "exercises/support/lines.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr CostModel true_line{5e-6, 1e-9};

std::string to_string(const CostModel& line) {
    return "alpha = " + format_seconds(line.alpha_s) +
           ", 1 / beta = " + format_bandwidth(1 / line.beta_s_per_byte);
}

bool is_near(double yours, double right, double tolerance) {
    return std::abs(yours - right) <= tolerance * std::abs(right);  // false for NaN
}

double sum_of_squares(const std::vector<MessageTime>& times, const CostModel& line) {
    double sum = 0;
    for (const MessageTime& time : times)
        sum += std::pow(line.seconds(time.bytes) / time.seconds - 1, 2);
    return sum;
}

// Returns which mistake leads to `line`, or "" if it is none of the usual ones.
std::string cause_of(const std::vector<MessageTime>& times, const CostModel& line) {
    const auto has_weight = [&](double power) {
        const CostModel other = line_by_weight(times, power);
        return is_near(line.alpha_s, other.alpha_s, 1e-6) &&
               is_near(line.beta_s_per_byte, other.beta_s_per_byte, 1e-6);
    };
    if (has_weight(0))
        return "That is the line whose errors in seconds are small, with 1 for all weights: are "
               "yours relative?";
    if (has_weight(1))
        return "That is the line for the weight 1 / seconds. The square of a relative error has "
               "the weight 1 / seconds^2.";
    return "";
}

// 4 bytes to 16 MiB; `disturb` says by how much of itself the i-th of twelve times is wrong.
void check_line(const std::function<double(std::size_t)>& disturb, double tolerance,
                const std::string& hint) {
    std::vector<MessageTime> times;
    for (std::size_t i = 0; i < 12; i++) {
        const std::size_t bytes = std::size_t{4} << (2 * i);
        times.push_back({bytes, true_line.seconds(bytes) * (1 + disturb(i))});
    }
    const CostModel line = nearest_line(times);
    const std::string cause = cause_of(times, line);
    if (!is_near(line.alpha_s, true_line.alpha_s, tolerance) ||
        !is_near(line.beta_s_per_byte, true_line.beta_s_per_byte, tolerance))
        throw Wrong("Twelve sizes, from 4 bytes to 16 MiB: you say " + to_string(line) +
                    "; the times were made with " + to_string(true_line) + ".\n" +
                    (cause.empty() ? hint : cause));
    const double yours = sum_of_squares(times, line),
                 least = sum_of_squares(times, line_by_weight(times, 2));
    if (!(yours <= 1.001 * least + 1e-9))
        throw Wrong(
            "Twelve sizes, from 4 bytes to 16 MiB: the squares of your line's relative "
            "errors add up to " +
            format_fixed(yours, 5) + "; there is a line with " + format_fixed(least, 5) +
            ".\nDo all twelve times count, each with 1 / seconds^2 as its weight? A line through "
            "two points takes no notice of all the others.");
    held();
}

void check_lines() {
    check_line([](std::size_t) { return 0.0; }, 1e-6,
               "The times are on a line, to the last digit. (fit_cost() of the chapter looks at a "
               "third of them for each of the two numbers: it is not the nearest line.)");
    check_line([](std::size_t i) { return i < 8 || i == 11 ? 0
                                          : i % 2 == 0     ? 0.05
                                                           : -0.05; }, 0.1,
               "Some of the long messages are 5 % too slow or too fast here, which is more than "
               "alpha. Their errors count as much as a short message's 5 %: are yours relative?");
    check_line([](std::size_t i) { return i == 0 || i == 11 ? 0.4 : 0; }, 0.15,
               "The shortest and the longest message were disturbed here. A line through two "
               "points takes no notice of all the others.");
    check_line([](std::size_t i) { return i == 0       ? -0.1
                                          : i % 2 == 0 ? 0.02
                                                       : -0.02; }, 0.1,
               "The shortest message was faster than alpha here: the line need not go through it.");
}

void check_bytes(double share, double beta, std::size_t least, std::size_t most,
                 const std::string& hint) {
    const std::size_t bytes = bytes_for_share({1e-3, beta}, share);
    if (bytes < least || bytes > most)
        throw Wrong("alpha = 1 ms, 1 / beta = " + format_bandwidth(1 / beta) +
                    ": you say that messages of " + std::to_string(bytes) + " bytes reach " +
                    format_fixed(100 * share, 0) + " % of the bandwidth; it takes " +
                    std::to_string((least + most) / 2) + " bytes.\n" + hint);
}

void check_share() {
    // The quotients of the first two are whole numbers, but for their rounding.
    check_bytes(0.5, 1e-8, 99'999, 100'001,
                "Half of the bandwidth: as many seconds for the latency as for the bytes.");
    check_bytes(0.9, 1e-8, 899'999, 900'001, "The latency may take a tenth of the seconds.");
    check_bytes(
        0.5, 3e-9, 333'334, 333'334,
        "333333 and a third: a message has whole bytes, and 333333 of them do not reach it.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"line", check_lines}, {"share", check_share}};
}

}  // namespace ddp::test
