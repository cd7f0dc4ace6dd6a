// The exercise save_interval: runs that can be followed by hand, and averages beside a long run
// at random.
#include "exercises/19_checkpoint_failover/save_interval.hpp"

#include <algorithm>
#include <cmath>
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
    check_finish_of(10, 5, {}, 14, "The case: no failure, so ten steps and two checkpoints.");
    check_finish_of(10, 5, {9}, 21,
                    "The case: the first five steps are safe at 7 s. The failure costs two seconds "
                    "of work, which are done again, and the restart.");
    check_finish_of(10, 5, {6}, 25,
                    "The case: the failure comes during the first save, so nothing is safe.");
    check_finish_of(10, 4, {14}, 23,
                    "The case: three checkpoints, after steps 4 and 8 and after the last one.");
    check_finish_of(3, 5, {1, 20}, 11,
                    "The case: one checkpoint, at the end. The training has ended at 20 s.");
    check_finish_of(10, 5, {9, 16, 27}, 39, "The case: three failures, none in a restart.");
    check_finish_of(7, 3, {1.1}, 3.1, "The case: seconds that are no whole numbers.",
                    {0.25, 0.25, 0.5});
}

// ---- unlucky

void check_unlucky() {
    check_finish_of(10, 5, {9, 12}, 24,
                    "The case: the second failure comes in the restart, which begins again.");
    check_finish_of(10, 5, {7}, 19,
                    "The case: the first checkpoint is complete at 7 s, when the failure comes. "
                    "Nothing is lost, but it takes a restart.");
    check_finish_of(10, 5, {1, 2, 3, 30}, 22, "The case: two more failures in one restart.");
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
         "That's the time for a whole interval, and not for one step. "},
        {m * restarts * std::expm1(work / m) / interval,
         "You forget that a checkpoint takes time. "},
        {(m * restarts * std::expm1(work / m) + costs.save) / interval,
         "A failure can come during a save, too: its time belongs into the exponent. "},
        {m * std::expm1(segment / m) / interval,
         "You forget that a failure costs a restart, too. "},
        {segment / interval, "You forget the failures. "},
        {(segment + std::expm1(segment / m) * costs.restart) / interval,
         "You forget that what was done before a failure is lost. "},
        {(m * std::expm1(segment / m) + std::expm1(segment / m) * costs.restart) / interval,
         "You forget that a restart can fail, too. "},
        {segment * (1 + (segment / 2 + costs.restart) / m) / interval,
         "You reckon with one failure per interval at most, in its middle. "}};
    if (!std::isfinite(yours))
        cause =
            "Your formula never ends: between_failures is a time in seconds, and not a number of "
            "failures per second. ";
    for (const auto& [wrong, words] : wrongs)
        if (cause.empty() && std::abs(yours - wrong) <= 1e-6 * wrong)
            cause = words;
    throw Wrong(text(costs) + "; it is saved after every " + std::to_string(interval) +
                " steps, and fails every " + text(between_failures) + " s on average: you expect " +
                text(yours) + " s per step. A run with 100000 checkpoints takes " + text(seen) +
                " s per step.\n" + cause + hint);
}

void check_expected() {
    check_expected_of({1, 2, 100}, 20, 2000, "The case: failures are rare, and a restart is long.");
    check_expected_of({0.5, 2, 0}, 10, 1e9, "The case: next to no failures.");
    check_expected_of({1, 0, 0}, 100, 400, "The case: only lost work costs time.");
    check_expected_of({1, 5, 30}, 100, 100,
                      "The case: so many failures that most attempts to reach the next checkpoint "
                      "are in vain.");
    check_expected_of({1, 5, 60}, 20, 50, "The case: many restarts fail, too.");
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
        return "That's Young's sqrt(2 save between_failures), in steps. ";
    if (is(young))
        return "That's Young's formula, which gives seconds, and the interval is in steps. ";
    if (exact_step(costs, most, between_failures) < exact_step(costs, yours, between_failures) &&
        yours == most - 1)
        return "The interval `most` may be the best one, too: does your loop try it? ";
    if (yours == 1)
        return "That's the smallest interval. Does your search keep the smallest cost?";
    return "";
}

void check_best_of(const RunCosts& costs, double between_failures, int most,
                   const std::string& hint) {
    const auto step = [&](int interval) { return exact_step(costs, interval, between_failures); };
    int best = 1;
    for (int interval = 2; interval <= most; interval++)
        if (step(interval) < step(best))
            best = interval;
    const int yours = best_interval(costs, between_failures, most);
    if (yours < 1 || yours > most)
        throw Wrong("You choose an interval of " + std::to_string(yours) +
                    "; it should be from 1 to " + std::to_string(most) + ".");
    // The minimum is flat: a search that bisects need not find the very step.
    if (step(yours) > step(best) * (1 + 1e-4))
        throw Wrong(text(costs) + "; it fails every " + text(between_failures) +
                    " s on average: you save after every " + std::to_string(yours) + " steps (" +
                    text(step(yours)) + " s per step), best is every " + std::to_string(best) +
                    " (" + text(step(best)) + " s per step).\n" +
                    cause_of_best(costs, yours, between_failures, most) + hint);
}

void check_best() {
    check_best_of({1, 2, 10}, 10'000, 1000, "The case: a failure every three hours.");
    check_best_of({0.1, 2, 10}, 10'000, 5000, "The case: a step takes a tenth of a second.");
    check_best_of({1, 60, 10}, 300, 1000,
                  "The case: a checkpoint takes a fifth of the time between failures. Young's "
                  "formula is for checkpoints that take next to no time.");
    check_best_of({1, 0, 10}, 1000, 500, "The case: a checkpoint costs nothing.");
    check_best_of({1, 2, 10}, 1e7, 2, "The case: next to no failures, and two intervals.");
    check_best_of({20, 1, 10}, 100, 50, "The case: a step takes longer than Young's interval.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"finish", check_finish},
            {"expected", check_expected},
            {"best", check_best},
            {"unlucky", check_unlucky}};
}

}  // namespace ddp::test
