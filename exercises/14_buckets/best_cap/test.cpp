// The exercise best_cap: a prediction by the contract's rule, where a wrong one is shown real
// all-reduces over a simulated link, and a formula beside all sizes there are.
#include "exercises/14_buckets/best_cap.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "09_all_reduce/all_reduce.hpp"
#include "09_all_reduce/cost.hpp"
#include "common/report/units.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

std::string text_of(const BackwardPass& pass) {
    return std::to_string(pass.gradients) + " gradients of " +
           format_bytes(static_cast<double>(pass.bytes)) + ", backward " +
           format_seconds(pass.backward_s) + ", an all-reduce takes " +
           format_seconds(pass.all_reduce.alpha_s) + " and carries " +
           format_bytes(1 / pass.all_reduce.beta_s_per_byte) + "/s";
}

// ---- Task exposed

using Clock = std::chrono::steady_clock;

// One step of this rank. A device of its own "computes" backward, which takes no time of the
// processor: the host sleeps until a bucket is ready, as 13_async does.
double measured_once(Peers& peers, const BackwardPass& pass, int per_bucket) {
    const std::size_t elements = pass.bytes / sizeof(float);
    ArenaBuffer<float> data =
        peers.allocate<float>(elements * static_cast<std::size_t>(pass.gradients));
    data.copy_from(std::vector<float>(data.size()));
    Stream stream;
    peers.rank().barrier();
    const auto begin = Clock::now();
    const auto at = [&](double seconds) {
        return begin +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    };
    for (int first = 0; first < pass.gradients; first += per_bucket) {
        const int behind = std::min(first + per_bucket, pass.gradients);
        std::this_thread::sleep_until(at(pass.backward_s * behind / pass.gradients));
        float* bucket = data.data() + elements * static_cast<std::size_t>(first);
        two_shot_all_reduce(peers, bucket, bucket,
                            elements * static_cast<std::size_t>(behind - first), ReduceOp::sum,
                            stream);
    }
    peers.synchronize(stream);
    peers.rank().barrier();
    return std::chrono::duration<double>(Clock::now() - at(pass.backward_s)).count();
}

// How a prediction goes, right or wrong.
struct Schedule {
    const char* words;   // of the mistake
    double ready_at;     // 1: when a bucket's last gradient is ready, 0: its first, -1: at once
    bool has_queue;      // an all-reduce waits for the one before
    bool hides;          // all-reduces run beside backward
    bool cuts_the_last;  // bucket to the gradients that are left
    bool from_the_end;   // of backward, not from its beginning
};
double predicted_by(const Schedule& schedule, const BackwardPass& pass, int per_bucket) {
    double end = 0;
    for (int first = 0, behind = 0; first < pass.gradients; first = behind) {
        behind = first + std::min(per_bucket, pass.gradients - first);  // the sum may overflow
        const int now = schedule.cuts_the_last ? behind - first : per_bucket;
        const int ready_with = schedule.ready_at > 0 ? behind : schedule.ready_at == 0 ? first : 0;
        const double ready =
            schedule.hides ? pass.backward_s / pass.gradients * ready_with : pass.backward_s;
        end = (schedule.has_queue ? std::max(end, ready) : ready) +
              pass.all_reduce.seconds(pass.bytes * static_cast<std::size_t>(now));
    }
    return end - (schedule.from_the_end ? pass.backward_s : 0);
}
constexpr Schedule wrong_schedules[] = {
    {"That is the time from the BEGINNING of backward.\n", 1, true, true, true, false},
    {"You let no all-reduce begin before backward has ended.\n", 1, true, false, true, true},
    {"You let an all-reduce begin while the one before is still on the link.\n", 1, false, true,
     true, true},
    {"You let a bucket go when its FIRST gradient is computed; the last one counts.\n", 0, true,
     true, true, true},
    {"Yours is as if all gradients were ready when backward begins. (Is an integer divided by an "
     "integer?)\n",
     -1, true, true, true, true},
    {"Your last bucket is as large as the others, but it has fewer gradients.\n", 1, true, true,
     false, true}};

constexpr Schedule contract{"", 1, true, true, true, true};

// Returns what a wrong prediction tells, or "". Several mistakes may have made it.
std::string cause_of(const BackwardPass& pass, int per_bucket, double predicted) {
    std::string causes;
    const auto add_if = [&](double wrong, const std::string& words) {
        if (std::abs(predicted - wrong) <= 1e-9)
            causes += (causes.empty() ? "" : "Or: ") + words;
    };
    for (const Schedule& wrong : wrong_schedules)
        add_if(predicted_by(wrong, pass, per_bucket), wrong.words);
    double whole = 0, too_late = 0;  // ends of the last all-reduce
    for (int first = 0; first < pass.gradients; first += per_bucket) {
        const int behind = std::min(first + per_bucket, pass.gradients);
        const double takes =
            pass.all_reduce.seconds(pass.bytes * static_cast<std::size_t>(behind - first));
        whole = std::max(whole, behind == pass.gradients ? pass.backward_s : 0) + takes;
        too_late =
            std::max(too_late, pass.backward_s * (first + per_bucket) / pass.gradients) + takes;
    }
    add_if(whole - pass.backward_s,
           "All but the last bucket are ready at 0 s in yours: int divided by int drops the "
           "rest.\n");
    const double right = predicted_by(contract, pass, per_bucket);
    add_if(right + pass.all_reduce.alpha_s,
           "You count one all-reduce too many: there is no bucket behind the last gradient.\n");
    add_if(right - pass.all_reduce.alpha_s,
           "You leave out one latency: every all-reduce, that of the last bucket too, takes "
           "all_reduce.seconds(its bytes), and the latency is in that.\n");
    if (pass.gradients % per_bucket != 0)
        add_if(too_late - pass.backward_s,
               "Your last bucket is ready later than backward ends: it has fewer gradients, and "
               "none comes after it.\n");
    return causes;
}

// Two ranks over a link of 2 MB/s with a latency of 8 ms, which is slow enough for nothing else to
// count.
constexpr LinkSpeed link{2e6, 8e-3};

// Returns the least of three measured times: a machine with other work to do is slower than the
// link at times, never faster.
double measured_over_link(const BackwardPass& pass, int per_bucket) {
    double least = std::numeric_limits<double>::infinity();
    on_ranks(
        2,
        [&](Rank& rank) {
            Peers peers(rank, 1 << 20);
            for (int i = 0; i < 3; i++) {
                const double seconds = measured_once(peers, pass, per_bucket);
                if (rank.rank() == 0)
                    least = std::min(least, seconds);
            }
        },
        link);
    return least;
}

// The contract says when each all-reduce begins and how long it takes, so a prediction is right or
// wrong, on a busy machine, too. Only a wrong one is put beside a run.
void check_prediction(int gradients, std::size_t bytes, double backward_s, int per_bucket,
                      const std::string& hint) {
    const CostModel message{link.latency_s, 1 / link.bytes_per_second};
    CostModel all_reduce{two_shot_seconds(message, 2, 0), 0};
    all_reduce.beta_s_per_byte =
        (two_shot_seconds(message, 2, 1 << 20) - all_reduce.alpha_s) / (1 << 20);
    const BackwardPass pass{gradients, bytes, backward_s, all_reduce};
    const double predicted = exposed_seconds(pass, per_bucket),
                 right = predicted_by(contract, pass, per_bucket);
    if (std::abs(predicted - right) <= 1e-6 * right)
        return held();
    throw Wrong(text_of(pass) + ", " + std::to_string(per_bucket) + " in a bucket: you predict " +
                format_seconds(predicted) + " behind backward, and right is " +
                format_seconds(right) + ". (A run over a simulated link has just taken " +
                format_seconds(measured_over_link(pass, per_bucket)) + ".)\n" +
                cause_of(pass, per_bucket, predicted) + hint);
}

void check_exposed() {
    check_prediction(6, 8'000, 0.03, 6,
                     "One bucket: its all-reduce begins when backward has ended.");
    check_prediction(6, 8'000, 0.15, 1,
                     "The link keeps up: each bucket is reduced before the next one is ready. What "
                     "is left behind backward?");
    check_prediction(6, 16'000, 0.03, 1,
                     "Buckets become ready faster than the link can carry them. A bucket's "
                     "all-reduce begins when it is ready AND the one before has ended.");
    check_prediction(7, 16'000, 0.05, 3, "The last bucket has one gradient only.");
    check_prediction(7, 4'000, 0.2, 3,
                     "The last bucket has one gradient only, and the link waits for it.");
    check_prediction(7, 16'000, 0.21, 3,
                     "The link keeps up with full buckets. But the last one has one gradient only, "
                     "and waits for the all-reduce before it.");
    check_prediction(4, 40'000, 0.02, 3,
                     "Three gradients are in the first bucket, and one is left for the second.");
    check_prediction(7, 16'000, 0.02, 6,
                     "Six gradients are in the first bucket, and one is left for the second.");
    check_prediction(
        3, 16'000, 0.02, 5,
        "There are fewer gradients than a bucket may have: it is one bucket of three.");
}

// ---- Task best

double modelled(const BackwardPass& pass, int per_bucket) {
    double link_is_free = 0;
    for (int sent = 0; sent < pass.gradients;) {
        const int now = std::min(per_bucket, pass.gradients - sent);
        sent += now;
        link_is_free = std::max(link_is_free, pass.backward_s * sent / pass.gradients) +
                       pass.all_reduce.seconds(pass.bytes * static_cast<std::size_t>(now));
    }
    return link_is_free - pass.backward_s;
}

// Returns the seconds that the link is busy behind backward at least, whatever the buckets' size.
double left_by_the_link(const BackwardPass& pass) {
    const double all = static_cast<double>(pass.bytes) * pass.gradients;
    return std::max(0.0, all * pass.all_reduce.beta_s_per_byte - pass.backward_s);
}

// Returns what a wrong size tells, or "".
std::string cause_of_bytes(const BackwardPass& pass, double bytes) {
    const double all = static_cast<double>(pass.bytes) * pass.gradients;
    const double alpha = pass.all_reduce.alpha_s, beta = pass.all_reduce.beta_s_per_byte;
    const double made = pass.backward_s / all;
    const auto is = [&](double wrong) { return std::abs(bytes - wrong) <= 1e-6 * wrong; };
    if (bytes > all * 1.000001)
        return "A bucket cannot have more than all gradients.\n";
    if (!(bytes > 0))
        return "The size of a bucket is a positive number of bytes. Is made > beta where you "
               "divide by their difference?\n";
    if (is(std::sqrt(all * alpha / made)))
        return "That is the best size if there is a queue, whatever the link does.\n";
    if (is(std::min(
               {std::sqrt(all * alpha / made), made > beta ? alpha / (made - beta) : all, all}) /
           static_cast<double>(pass.bytes)))
        return "These are gradients; asked for are bytes.\n";
    if (is(all))
        return "That is one bucket, whose all-reduce waits for the whole of backward.\n";
    if (is(alpha / beta))
        return "With alpha / beta bytes the latency is half of an all-reduce; backward's speed is "
               "not in that.\n";
    if (is(std::sqrt(all * alpha / beta)))
        return "You take the speed of the link for that of backward.\n";
    for (const double factor : {0.5, 2.0})
        if (is(std::sqrt(factor * all * alpha / made)))
            return "There is a factor of 2 in your root. c r + K alpha / c is least where "
                   "r = K alpha / c².\n";
    if (made > beta && is(alpha / (made - beta)))
        return "That is the size with which the link keeps up. With a smaller one there is a "
               "queue, "
               "and less may be left all the same: take the better of the two.\n";
    if (is(alpha / made))
        return "In that time the link carries the latency alone, and not the bytes.\n";
    return "";
}

void check_best_of(const BackwardPass& pass, const std::string& hint) {
    const double bytes = best_bucket_bytes(pass);
    const double wanted = std::round(bytes / static_cast<double>(pass.bytes));
    const int per_bucket = static_cast<int>(
        std::clamp(std::isnan(wanted) ? 0.0 : wanted, 1.0, static_cast<double>(pass.gradients)));
    int best = 1;
    for (int n = 2; n <= pass.gradients; n++)
        if (modelled(pass, n) < modelled(pass, best))
            best = n;
    const double all = static_cast<double>(pass.bytes) * pass.gradients;
    const double link = left_by_the_link(pass);
    if (!(bytes > 0 && bytes <= all * 1.000001) ||
        modelled(pass, per_bucket) - link > 1.03 * (modelled(pass, best) - link))
        throw Wrong(
            text_of(pass) + ": with your buckets of " +
            (std::isfinite(bytes) && bytes >= 0 ? format_bytes(bytes) : std::to_string(bytes)) +
            " the last is reduced " + format_seconds(modelled(pass, per_bucket)) +
            " behind backward. It could be " + format_seconds(modelled(pass, best)) +
            ", with buckets of " + format_bytes(static_cast<double>(pass.bytes) * best) + ".\n" +
            cause_of_bytes(pass, bytes) + hint);
    held();
}

void check_best() {
    check_best_of({2000, 50'000, 20e-3, {50e-6, 1e-10}},
                  "The link is faster than backward. The smallest bucket with which it keeps up "
                  "leaves least behind: when does an all-reduce take as long as backward for the "
                  "next bucket?");
    check_best_of({2000, 50'000, 20e-3, {20e-6, 4e-10}},
                  "The link is slower than backward: buckets queue up, whatever their size. Small "
                  "ones begin early, large ones pay few latencies.");
    check_best_of({2000, 50'000, 20e-3, {20e-6, 2e-9}},
                  "The link is ten times slower than backward: it is busy all the time, and its "
                  "speed does not decide how large buckets should be. How long does the first one "
                  "wait until it is ready, and how many latencies are there?");
    check_best_of({2000, 50'000, 20e-3, {2e-6, 1.9e-10}},
                  "The link is a little faster than backward, and an all-reduce begins quickly: a "
                  "bucket with which it keeps up is still a small one.");
    check_best_of({2000, 50, 1e-3, {5e-3, 1e-10}},
                  "An all-reduce takes longer to begin than all of backward: a bucket cannot have "
                  "more than everything.");
    check_best_of({2000, 50, 1e-3, {5e-3, 2e-8}},
                  "The link is slower than backward, and an all-reduce takes longer to begin than "
                  "all of backward: a bucket cannot have more than everything here either.");
    check_best_of(
        {2000, 50'000, 20e-3, {50e-6, 2e-10 / 1.005}},
        "The link is hardly faster than backward: a bucket with which it keeps up would be "
        "so large that a queue is better.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"exposed", check_exposed}, {"best", check_best}};
}

}  // namespace ddp::test
