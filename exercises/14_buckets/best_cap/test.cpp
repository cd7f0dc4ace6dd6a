// The exercise best_cap: a prediction by the contract's rule, and a formula beside all sizes there
// are.
#include "exercises/14_buckets/best_cap.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/report/units.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

std::string to_string(const BackwardPass& pass) {
    return std::to_string(pass.gradients) + " gradients of " +
           format_bytes(static_cast<double>(pass.bytes)) + ", backward " +
           format_seconds(pass.backward_s) + ", an all-reduce takes " +
           format_seconds(pass.all_reduce.alpha_s) + " and carries " +
           format_bytes(1 / pass.all_reduce.beta_s_per_byte) + "/s";
}

// ---- Task exposed

// How a prediction goes, right or wrong.
struct Schedule {
    const char* words;                                             // of the mistake
    enum { at_its_last, at_its_first, at_0 } ready = at_its_last;  // gradient, or int / int
    bool has_queue = true;      // an all-reduce waits for the one before
    bool hides = true;          // all-reduces run beside backward
    bool cuts_the_last = true;  // bucket to the gradients that are left
    bool from_the_end = true;   // of backward, not from its beginning
};
double predicted_by(const Schedule& schedule, const BackwardPass& pass, int per_bucket) {
    double end = 0;
    for (int first = 0; first < pass.gradients; first += per_bucket) {
        const int behind = std::min(first + per_bucket, pass.gradients);
        const int now = schedule.cuts_the_last ? behind - first : per_bucket;
        const int ready_with = schedule.ready == Schedule::at_its_last    ? behind
                               : schedule.ready == Schedule::at_its_first ? first
                               : behind == pass.gradients                 ? behind
                                                                          : 0;
        const double ready =
            schedule.hides ? pass.backward_s / pass.gradients * ready_with : pass.backward_s;
        end = (schedule.has_queue ? std::max(end, ready) : ready) +
              pass.all_reduce.seconds(pass.bytes * static_cast<std::size_t>(now));
    }
    return end - (schedule.from_the_end ? pass.backward_s : 0);
}
constexpr Schedule contract{""};
constexpr Schedule wrong_schedules[] = {
    {.words = "That is the time from the BEGINNING of backward.\n", .from_the_end = false},
    {.words = "You let no all-reduce begin before backward has ended.\n", .hides = false},
    {.words = "You let an all-reduce begin while the one before is still on the link.\n",
     .has_queue = false},
    {.words = "You let a bucket go when its FIRST gradient is computed; the last one counts.\n",
     .ready = Schedule::at_its_first},
    {.words = "All but the last bucket are ready at 0 s in yours: int divided by int drops the "
              "rest.\n",
     .ready = Schedule::at_0},
    {.words = "Your last bucket is as large as the others, but it has fewer gradients.\n",
     .cuts_the_last = false}};

struct Case {
    BackwardPass pass;
    int per_bucket;
    const char* hint;
};
// An all-reduce takes 16 ms, and carries 2 MB/s.
constexpr CostModel slow{16e-3, 1 / 2e6};
constexpr Case cases[] = {
    {{6, 8'000, 0.03, slow}, 6, "The case: one bucket."},
    {{6, 8'000, 0.15, slow}, 1, "The case: each bucket is reduced before the next one is ready."},
    {{6, 16'000, 0.03, slow},
     1,
     "The case: buckets become ready faster than the link can carry them."},
    {{7, 16'000, 0.05, slow}, 3, "The case: the last bucket has one gradient only."},
    {{7, 16'000, 0.21, slow},
     3,
     "The case: the last bucket is ready while the one before is sent."},
    {{3, 16'000, 0.02, slow}, 5, "The case: a bucket has room for more than all gradients."}};

// Returns the mistake that gives all these predictions, or "".
std::string cause_of_all() {
    for (const Schedule& wrong : wrong_schedules)
        if (std::ranges::all_of(cases, [&](const Case& one) {
                return std::abs(exposed_seconds(one.pass, one.per_bucket) -
                                predicted_by(wrong, one.pass, one.per_bucket)) <= 1e-9;
            }))
            return wrong.words;
    return "";
}

void check_exposed() {
    for (const auto& [pass, per_bucket, hint] : cases) {
        const double predicted = exposed_seconds(pass, per_bucket);
        const double right = predicted_by(contract, pass, per_bucket);
        if (!(std::abs(predicted - right) <= 1e-6 * right))
            throw Wrong(to_string(pass) + ", " + std::to_string(per_bucket) +
                        " in a bucket: you predict that the last all-reduce ends " +
                        format_seconds(predicted) + " after backward, and it ends " +
                        format_seconds(right) + " after it.\n" + cause_of_all() + hint);
        held();
    }
}

// ---- Task best

// Returns what a wrong size tells, or "".
std::string cause_of_bytes(const BackwardPass& pass, double bytes) {
    const double all = static_cast<double>(pass.bytes) * pass.gradients;
    const double alpha = pass.all_reduce.alpha_s, beta = pass.all_reduce.beta_s_per_byte;
    const double made = pass.backward_s / all;
    if (bytes > all * 1.000001)
        return "A bucket cannot have more than all gradients.\n";
    if (!(bytes > 0))
        return "The size of a bucket is a positive number of bytes. If you divide by r - beta, "
               "where backward makes a byte in r seconds: is r larger here?\n";
    const double queue = std::sqrt(all * alpha / made);
    const double keeps_up = made > beta ? alpha / (made - beta) : all;
    const std::string factor =
        "There is a factor of 2 in your root. c r + K alpha / c is least "
        "where r = K alpha / c².\n";
    const std::pair<double, std::string> wrongs[] = {
        {queue, "That is the best size if there is a queue. Is there one?\n"},
        {std::min({queue, keeps_up, all}) / static_cast<double>(pass.bytes),
         "That is a number of gradients, and not of bytes.\n"},
        {alpha / beta,
         "With alpha / beta bytes the latency is half of an all-reduce; backward's "
         "speed is not in that.\n"},
        {std::sqrt(all * alpha / beta), "You take the speed of the link for that of backward.\n"},
        {std::sqrt(0.5) * queue, factor},
        {std::sqrt(2) * queue, factor},
        {keeps_up,
         "That is the size with which the link keeps up. A smaller one makes a queue, "
         "and can still leave less: take the better of the two.\n"}};
    for (const auto& [wrong, words] : wrongs)
        if (std::abs(bytes - wrong) <= 1e-6 * wrong)
            return words;
    return "";
}

void check_best_of(const BackwardPass& pass, const std::string& hint) {
    const auto exposed = [&](int n) { return predicted_by(contract, pass, n); };
    const double bytes = best_bucket_bytes(pass);
    const double wanted = std::round(bytes / static_cast<double>(pass.bytes));
    const int per_bucket = static_cast<int>(
        std::clamp(std::isnan(wanted) ? 0.0 : wanted, 1.0, static_cast<double>(pass.gradients)));
    int best = 1;
    for (int n = 2; n <= pass.gradients; n++)
        if (exposed(n) < exposed(best))
            best = n;
    const double all = static_cast<double>(pass.bytes) * pass.gradients;
    // The link is this long at work after backward, whatever the buckets' size.
    const double link = std::max(0.0, all * pass.all_reduce.beta_s_per_byte - pass.backward_s);
    if (!(bytes > 0 && bytes <= all * 1.000001) ||
        exposed(per_bucket) - link > 1.03 * (exposed(best) - link))
        throw Wrong(
            to_string(pass) + ": with your buckets of " +
            (std::isfinite(bytes) && bytes >= 0 ? format_bytes(bytes) : std::to_string(bytes)) +
            " the last all-reduce ends " + format_seconds(exposed(per_bucket)) +
            " after backward. With buckets of " +
            format_bytes(static_cast<double>(pass.bytes) * best) + " it would end " +
            format_seconds(exposed(per_bucket) - exposed(best)) + " sooner.\n" +
            cause_of_bytes(pass, bytes) + hint);
    held();
}

void check_best() {
    check_best_of({2000, 50'000, 20e-3, {50e-6, 1e-10}},
                  "The case: the link is faster than backward. The smallest bucket with which it "
                  "keeps up leaves least behind: when does an all-reduce take as long as backward "
                  "for the next bucket?");
    check_best_of({2000, 50'000, 20e-3, {20e-6, 4e-10}},
                  "The case: the link is slower than backward, so buckets queue up, whatever their "
                  "size. Small ones begin early, large ones pay few latencies.");
    check_best_of({2000, 50'000, 20e-3, {2e-6, 1.9e-10}},
                  "The case: the link is a little faster than backward, and an all-reduce begins "
                  "quickly: a bucket with which it keeps up is still a small one.");
    check_best_of({2000, 50, 1e-3, {5e-3, 1e-10}},
                  "The case: an all-reduce takes longer to begin than all of backward: a bucket "
                  "cannot have more than everything.");
    check_best_of({2000, 50'000, 20e-3, {50e-6, 2e-10 / 1.005}},
                  "The case: the link is hardly faster than backward: a bucket with which it keeps "
                  "up would be so large that a queue is better.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"exposed", check_exposed}, {"best", check_best}};
}

}  // namespace ddp::test
