// The exercise save_interval: runs that can be followed by hand, and averages beside a long run
// at random.
#include "exercises/19_checkpoint_failover/save_interval.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

std::string text(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    return text.back() == '.' ? text.substr(0, text.size() - 1) : text;
}
std::string text(const RunCosts& costs) {
    return "A step takes " + text(costs.step) + " s, a checkpoint " + text(costs.save) +
           " s, a restart " + text(costs.restart) + " s";
}

// ---- finish

constexpr RunCosts small{1, 2, 5};

void check_finish_of(int steps, int interval, const std::vector<double>& failures, double right,
                     const std::string& hint, const RunCosts& costs = small) {
    std::string when;
    for (const double failure : failures)
        when += (when.empty() ? "" : ", ") + text(failure);
    const std::string run = text(costs) + ". " + std::to_string(steps) +
                            " steps, saved after every " + std::to_string(interval) +
                            "; failures at (" + when + ")";
    trying(run + ".\n" + hint);
    const double yours = finish(costs, steps, interval, failures);
    if (!(std::abs(yours - right) <= 1e-9 * right))
        throw Wrong(run + ": you end after " + text(yours) + " s, right is " + text(right) +
                    " s.\n" + hint);
}

void check_finish() {
    check_finish_of(10, 5, {}, 14, "No failure: ten steps and two checkpoints.");
    check_finish_of(10, 4, {}, 16,
                    "Three checkpoints: after steps 4 and 8, and after the last one.");
    check_finish_of(3, 5, {}, 5, "Fewer steps than the interval: one checkpoint, at the end.");
    check_finish_of(10, 5, {9}, 21,
                    "The first five steps are safe after 7 s. The failure at 9 costs two seconds "
                    "of work, which are done again, and the restart.");
    check_finish_of(10, 5, {6}, 25,
                    "The failure comes while the first checkpoint is being saved: it is not whole, "
                    "and nothing is safe.");
    check_finish_of(10, 5, {7}, 19,
                    "The first checkpoint is whole at 7, and the failure comes at 7: nothing is "
                    "lost, but a restart it is.");
    check_finish_of(10, 5, {9, 12}, 24,
                    "The second failure comes in the restart, which begins anew.");
    check_finish_of(10, 5, {9, 12, 16, 27}, 39,
                    "Four failures; the last one comes when the last checkpoint is almost there.");
    check_finish_of(10, 5, {1, 2, 3, 30}, 22,
                    "A failure in the first interval, and two more in its restart. The one at 30 "
                    "comes when the training has ended.");
    check_finish_of(
        10, 5, {1, 6, 13}, 32,
        "The failure at 6 comes when the restart ends, and needs another one, until 11; "
        "that at 13 comes two seconds later.");
    check_finish_of(10, 4, {14}, 23,
                    "The failure comes after steps 9 and 10: only these two are done again.");
    check_finish_of(10, 5, {14, 20}, 14, "The training is at its end before they come.");
    check_finish_of(10, 5, {9}, 16,
                    "A restart may take no time: it goes on at 9, and the failure at 9 is over.",
                    {1, 2, 0});
    check_finish_of(10, 4, {2}, 6, "Seconds need not be whole: is there an int in your code?",
                    {0.25, 0.5, 1.5});
    check_finish_of(7, 3, {1.1}, 3.6, "Tenths of seconds: is there a float in your code?",
                    {0.1, 0.3, 1.5});
    check_finish_of(7, 3, {1}, 16.9 / 3,
                    "A third of a second is no whole number of microseconds, either: keep time in "
                    "a double.",
                    {1.0 / 3, 0.1, 2});
    check_finish_of(10, 5, {0}, 19,
                    "The failure comes at the very beginning, and costs a restart: does a time of "
                    "0 stand for no failure in your code?");
    check_finish_of(3, 2, {1e10}, 3.01e12 + 9,
                    "Times may be long: which number stands for never in your code?", {1e12, 2, 5});
}

// ---- expected

// Seconds that a training of many steps has taken for each, in which failures come at random.
double simulated_step(const RunCosts& costs, int interval, double between_failures) {
    constexpr int segments = 100'000;
    std::mt19937_64 random(1);
    // Not std::exponential_distribution, whose numbers differ from library to library.
    const auto until_failure = [&] {
        const double uniform = (static_cast<double>(random() >> 11) + 0.5) / 9007199254740992.0;
        return -between_failures * std::log(uniform);
    };
    double now = 0, failure = until_failure();
    const double work = interval * costs.step + costs.save;
    for (int segment = 0; segment < segments; segment++) {
        while (failure < now + work) {
            now = failure + costs.restart;
            failure += until_failure();
            while (failure < now) {
                now = failure + costs.restart;
                failure += until_failure();
            }
        }
        now += work;
    }
    return now / segments / interval;
}

void check_expected_of(const RunCosts& costs, int interval, double between_failures,
                       const std::string& hint) {
    const double yours = expected_step(costs, interval, between_failures);
    const double seen = simulated_step(costs, interval, between_failures);
    if (std::abs(yours - seen) <= 0.02 * seen)
        return held();
    std::string cause;
    const double work = interval * costs.step, segment = work + costs.save;
    const double m = between_failures, restarts = std::exp(costs.restart / m);
    const std::pair<double, const char*> wrongs[] = {
        {m * restarts * std::expm1(segment / m),
         "That is the time of a whole interval; asked for is that of one step. "},
        {m * restarts * std::expm1(work / m) / interval,
         "You forget that a checkpoint takes time. "},
        {(m * restarts * std::expm1(work / m) + costs.save) / interval,
         "A checkpoint can fail as steps can: its time stands in the exponent, beside theirs. "},
        {m * std::expm1(segment / m) / interval,
         "You forget that a failure costs a restart, too. "},
        {m * std::expm1((segment + costs.restart) / m) / interval,
         "You restart before every interval, also where nothing has failed. "},
        {segment / interval, "You forget the failures. "},
        {(segment + std::expm1(segment / m) * costs.restart) / interval,
         "You forget that what was done before a failure is lost. "},
        {(m * std::expm1(segment / m) + std::expm1(segment / m) * costs.restart) / interval,
         "You forget that a restart can fail, too. "},
        {segment * (1 + (segment / 2 + costs.restart) / m) / interval,
         "You reckon with one failure in an interval at most, in its middle. "},
        {segment * (1 + (segment + costs.restart) / m) / interval,
         "You reckon with one failure in an interval at most, at its end. "}};
    if (!std::isfinite(yours))
        cause =
            "It never comes to its end in your formula: between_failures is a time in seconds, "
            "and not a number of failures a second. ";
    for (const auto& [wrong, words] : wrongs)
        if (cause.empty() && std::abs(yours - wrong) <= 1e-6 * wrong)
            cause = words;
    throw Wrong(text(costs) + "; it is saved after every " + std::to_string(interval) +
                " steps, and fails every " + text(between_failures) + " s on average: you expect " +
                text(yours) + " s a step. A run with 100000 checkpoints takes " + text(seen) +
                " s a step.\n" + cause + hint);
}

void check_expected() {
    check_expected_of({0.5, 2, 0}, 10, 1e9,
                      "It hardly ever fails: what is left is a share of a checkpoint.");
    check_expected_of({1, 2, 100}, 20, 2000, "It seldom fails, and a restart costs something.");
    check_expected_of({1, 0, 0}, 100, 400,
                      "Nothing costs but lost work: half of the steps since the last checkpoint, "
                      "and a little less, as failures come earlier.");
    check_expected_of({1, 5, 30}, 100, 100,
                      "It fails so often that most attempts to come to the next checkpoint do.");
    check_expected_of({1, 5, 60}, 20, 50, "Here many a restart fails, too.");
}

// ---- best

double exact_step(const RunCosts& costs, int interval, double between_failures) {
    return between_failures * std::exp(costs.restart / between_failures) *
           std::expm1((interval * costs.step + costs.save) / between_failures) / interval;
}

// Returns what a wrong interval tells, or "".
std::string cause_of_best(const RunCosts& costs, int yours, double between_failures, int most) {
    const auto is = [&](double seconds) {
        return yours == std::clamp(static_cast<int>(std::lround(seconds)), 1, most) ||
               yours == std::clamp(static_cast<int>(seconds), 1, most);
    };
    const double young = std::sqrt(2 * costs.save * between_failures);
    if (is(young / costs.step) && young / costs.step > 1)
        return "That is Young's sqrt(2 save between_failures), in steps. ";
    if (is(young))
        return "That is Young's formula, which gives seconds. ";
    if (is(young / std::sqrt(2.0) / costs.step))
        return "The 2 of Young's sqrt(2 save between_failures) is missing. ";
    if (exact_step(costs, most, between_failures) < exact_step(costs, yours, between_failures) &&
        yours == most - 1)
        return "The interval `most` may be the best one, too: does your loop try it? ";
    if (yours == most)
        return "That is the largest interval there may be, which few failures would allow. ";
    if (yours == 1)
        return "That is the smallest interval: does your search keep the smallest cost, or the "
               "largest? ";
    return "";
}

void check_best_of(const RunCosts& costs, double between_failures, int most, int right,
                   const std::string& hint) {
    const int yours = best_interval(costs, between_failures, most);
    const auto step = [&](int interval) {
        return text(exact_step(costs, interval, between_failures)) + " s a step";
    };
    if (yours < 1 || yours > most)
        throw Wrong("You choose an interval of " + std::to_string(yours) +
                    "; it is to be from 1 to " + std::to_string(most) + ".");
    // The least is flat: who finds it by halves need not meet the very step.
    if (exact_step(costs, yours, between_failures) >
        exact_step(costs, right, between_failures) * (1 + 1e-4))
        throw Wrong(text(costs) + "; it fails every " + text(between_failures) +
                    " s on average: you save after every " + std::to_string(yours) + " steps (" +
                    step(yours) + "), best is every " + std::to_string(right) + " (" + step(right) +
                    ").\n" + cause_of_best(costs, yours, between_failures, most) + hint);
}

int best_of_all(const RunCosts& costs, double between_failures, int most) {
    int best = 1;
    double least = std::numeric_limits<double>::infinity();
    for (int interval = 1; interval <= most; interval++) {
        const double seconds = exact_step(costs, interval, between_failures);
        if (seconds < least) {
            least = seconds;
            best = interval;
        }
    }
    return best;
}

void check_best() {
    const auto check = [](const RunCosts& costs, double between_failures, int most,
                          const std::string& hint) {
        check_best_of(costs, between_failures, most, best_of_all(costs, between_failures, most),
                      hint);
    };
    check({1, 2, 10}, 10'000, 1000, "Once in three hours, and a checkpoint costs two steps.");
    check({0.1, 2, 10}, 10'000, 5000,
          "A step takes a tenth of a second: the interval is in steps.");
    check({1, 60, 10}, 300, 1000,
          "A checkpoint takes a fifth of the time between failures: sqrt(2 save between_failures) "
          "is for those that take next to nothing.");
    check({1, 0, 10}, 1000, 500, "A checkpoint costs nothing: save after every step.");
    check({1, 2, 10}, 1e7, 300, "It hardly ever fails: as seldom as you may.");
    check({1, 2, 10}, 1e7, 2, "There are two intervals to choose from.");
    check({1, 2, 10}, 1e7, 1, "There is one interval to choose from.");
    check({20, 1, 10}, 100, 50, "A step takes longer than the interval should be.");
    for (const double between : {50.0, 700.0, 9000.0})
        check({2, 3, 20}, between, 400, "Another mean time between failures.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"finish", check_finish}, {"expected", check_expected}, {"best", check_best}};
}

}  // namespace ddp::test
