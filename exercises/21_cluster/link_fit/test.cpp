// The exercise link_fit: times that are made from a known line, some of them disturbed; then
// all-reduces over a simulated network, as a bench prints them.
#include "exercises/21_cluster/link_fit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/report/units.hpp"
#include "exercises/support/lines.hpp"
#include "exercises/support/plans.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr CostModel true_link{50e-6, 80e-9};  // 12.5 MB/s

bool is_near(double yours, double right, double tolerance = 1e-9) {
    return std::abs(yours - right) <= tolerance * std::abs(right);  // false for NaN
}
bool is_near(const CostModel& yours, const CostModel& right, double alpha_tolerance,
             double beta_tolerance) {
    return is_near(yours.alpha_s, right.alpha_s, alpha_tolerance) &&
           is_near(yours.beta_s_per_byte, right.beta_s_per_byte, beta_tolerance);
}

std::string to_string(const CostModel& line) {
    return "alpha = " + format_seconds(line.alpha_s) +
           ", 1 / beta = " + format_bandwidth(1 / line.beta_s_per_byte);
}

// ---- Task robust

// By how much of itself the i-th time is wrong.
using Disturb = std::function<double(std::size_t i)>;

CostModel line_through(const MessageTime& one, const MessageTime& other) {
    const double beta = (other.seconds - one.seconds) /
                        (static_cast<double>(other.bytes) - static_cast<double>(one.bytes));
    return {one.seconds - beta * static_cast<double>(one.bytes), beta};
}

// Returns what a wrong line tells, or "".
std::string cause_of(std::vector<MessageTime> times, const CostModel& line) {
    const auto is = [&](const CostModel& wrong) { return is_near(line, wrong, 1e-6, 1e-6); };
    if (is(line_by_weight(times, 2)) || is(line_by_weight(times, 0)))
        return "That's the line with the smallest squares, and the wrong times have the largest "
               "ones.\n";
    std::ranges::sort(times, {}, &MessageTime::bytes);
    if (is(line_through(times.front(), times.back())))
        return "That's the line through the shortest and the longest message. Either may be "
               "wrong.\n";
    return "";
}

// Sizes from the smallest to 4096 times as much, and not in their order.
void check_robust_of(const std::string& what, const Disturb& disturb, double alpha_tolerance,
                     double beta_tolerance, const std::string& hint) {
    constexpr std::size_t sizes = 12;
    for (const bool is_sorted : {false, true}) {
        std::vector<MessageTime> times;
        for (std::size_t k = 0; k < sizes; k++) {
            const std::size_t i = is_sorted ? sizes - 1 - k : k * 7 % sizes;
            const auto bytes = static_cast<std::size_t>(
                1024 *
                std::pow(2.0, 12.0 / static_cast<double>(sizes - 1) * static_cast<double>(i)));
            times.push_back({bytes, true_link.seconds(bytes) * (1 + disturb(i))});
        }
        const CostModel yours = robust_line(times);
        const std::string order = is_sorted ? ", the longest message first. " : ", in no order. ";
        if (!is_near(yours, true_link, alpha_tolerance, beta_tolerance))
            throw Wrong(std::to_string(sizes) + " times, from 1 KiB to 4 MiB" + order + what +
                        " You say " + to_string(yours) + "; the times were made with " +
                        to_string(true_link) + ".\n" + cause_of(times, yours) + hint);
        held();
    }
}

double noise(std::size_t i) {
    return 0.02 * std::sin(7.0 * static_cast<double>(i) + 1);
}

void check_robust() {
    check_robust_of(
        "All of them are on a line, to the last digit.", [](std::size_t) { return 0.0; }, 1e-6,
        1e-6, "The case: any line through two of them is right.");
    check_robust_of(
        "One of them is twice as long as it should be.",
        [](std::size_t i) { return i == 7 ? 1.0 : 0; }, 1e-6, 1e-6,
        "The case: eleven times are on one line.");
    check_robust_of(
        "The longest message took a thousand times as long as it should.",
        [](std::size_t i) { return i == 11 ? 999.0 : 0; }, 1e-6, 1e-6,
        "The case: all but the longest are on one line.");
    check_robust_of(
        "The shortest message took three times as long as it should.",
        [](std::size_t i) { return i == 0 ? 2.0 : 0; }, 1e-6, 1e-6,
        "The case: all but the shortest are on one line.");
    check_robust_of(
        "Three of them, the longest, took twice as long as they should.",
        [](std::size_t i) { return i >= 9 ? 1.0 : 0; }, 1e-6, 1e-6,
        "The case: three times are on a wrong line, and nine on the right one.");
    check_robust_of(
        "Three of them, the shortest, took 1 ms longer than they should.",
        [](std::size_t i) {
            const double bytes = 1024 * std::pow(2.0, 12.0 / 11 * i);
            return i < 3 ? 1e-3 / true_link.seconds(static_cast<std::size_t>(bytes)) : 0;
        },
        1e-3, 1e-3, "The case: three short messages are wrong, and nine times are on one line.");
    check_robust_of(
        "Each is wrong by 2 % at most, and three are twenty times as long.",
        [](std::size_t i) { return i == 2 || i == 5 || i == 10 ? 19.0 : noise(i); }, 0.2, 0.05,
        "The case: no line passes through most of them. The line with the smallest median of "
        "errors passes near most of them. Are your errors relative?");
}

// ---- Task wire

// An all-reduce of `bytes` over a simulated network: its bus bandwidth, and what left a node.
struct Simulated {
    double bus_bandwidth, wire_bandwidth;
};
Simulated simulated(int nodes, int ranks_per_node, int levels, const CostModel& link,
                    double bytes) {
    const int ranks = nodes * ranks_per_node;
    const MessagePlan plan = levels == 1 ? ring_plan(ranks) : rail_ring_plan(nodes, ranks_per_node);
    const double seconds = seconds_of(
        plan, nodes_with_ports(nodes, ranks_per_node, link.alpha_s, 1 / link.beta_s_per_byte),
        bytes);
    const std::vector<int> per_node(static_cast<std::size_t>(nodes), ranks_per_node);
    const double share = sent_by(plan, node_after_node(per_node)).shares[0];
    return {2.0 * (ranks - 1) / ranks * bytes / seconds, share * bytes / seconds};
}

void check_wire_of(int nodes, int ranks_per_node, int levels, const std::string& hint) {
    const Simulated right = simulated(nodes, ranks_per_node, levels, true_link, 1e7);
    const double yours = wire_bandwidth(nodes, ranks_per_node, levels, right.bus_bandwidth);
    if (is_near(yours, right.wire_bandwidth, 1e-6))
        return held();
    const double ranks = nodes * ranks_per_node;
    const double algorithm = right.bus_bandwidth / (2 * (ranks - 1) / ranks);
    std::string cause;
    if (is_near(yours, right.bus_bandwidth, 1e-6))
        cause =
            "That's the bus bandwidth itself. It counts what each rank sends in one ring, and on "
            "two "
            "levels most of that stays within a node.\n";
    else if (is_near(yours, algorithm, 1e-6))
        cause = "That's K / t, the array by the time.\n";
    else if (is_near(yours, algorithm * 2 * (nodes - 1) / nodes, 1e-6))
        cause = "That's right for two levels, and this is one ring.\n";
    else if (is_near(yours, right.wire_bandwidth / ranks_per_node, 1e-6))
        cause = "That's what one rank of the node has sent.\n";
    throw Wrong(format_count(nodes, "node") + " of " + format_count(ranks_per_node, "rank") +
                (levels == 1 ? ", one ring" : ", two levels") + ", a bus bandwidth of " +
                format_bandwidth(right.bus_bandwidth) + ": " +
                format_bandwidth(right.wire_bandwidth) +
                " have left each node, counted message by message; you say " +
                format_bandwidth(yours) + ".\n" + cause + hint);
}

void check_wire() {
    check_wire_of(2, 2, 2, "The case: 2 (N - 1) / N K is 1.5 K, and 2 (H - 1) / H K is 1 K.");
    check_wire_of(4, 3, 1, "The case: one ring through four nodes.");
    check_wire_of(2, 2, 1,
                  "The case: one ring, in which one rank of a node sends to another node.");
    check_wire_of(4, 8, 2, "The case: four nodes of eight ranks.");
    check_wire_of(3, 1, 2, "The case: one rank per node, so both are the same.");
}

// ---- Task link

// Returns what a wrong link tells, or "".
std::string cause_of_link(int nodes, int ranks_per_node, const CostModel& yours) {
    const double steps = 2 * (nodes - 1), ranks = nodes * ranks_per_node;
    const auto factor_of = [](double value, double right) { return value / right; };
    const double alpha = factor_of(yours.alpha_s, true_link.alpha_s);
    const double beta = factor_of(yours.beta_s_per_byte, true_link.beta_s_per_byte);
    const auto is = [](double factor, double wrong) { return is_near(factor, wrong, 0.02); };
    const double bus = 2 * (ranks - 1) / ranks;
    if (is(alpha, 1 / bus) || is(beta, 1 / bus))
        return "The bus bandwidth is not K / t, but 2 (N - 1) / N K / t.\n";
    if (is(alpha, steps))
        return "Your alpha is for the whole all-reduce, which has 2 (H - 1) messages one after the "
               "other.\n";
    if (is(alpha, steps / (2 * (ranks - 1))))
        return "You count the rounds of one ring of all ranks. Those within a node take no time "
               "here.\n";
    if (is(beta, steps / ranks))
        return "Your beta is for a byte of the array. A message has only a part of the array.\n";
    if (is(beta, 1.0 / ranks_per_node))
        return "Your messages have K / H bytes. There are L rails, each with a part of it.\n";
    return "";
}

void check_link_of(int nodes, int ranks_per_node, const Disturb& disturb, double tolerance,
                   const std::string& what) {
    std::vector<PrintedLine> lines;
    for (std::size_t i = 0; i < 11; i++) {
        const std::size_t bytes = std::size_t{2048} << i;
        const double bandwidth =
            simulated(nodes, ranks_per_node, 2, true_link, static_cast<double>(bytes))
                .bus_bandwidth;
        lines.push_back({bytes, bandwidth / (1 + disturb(i))});
    }
    const CostModel yours = link_of(nodes, ranks_per_node, lines);
    const std::string told = format_count(nodes, "node") + " of " +
                             format_count(ranks_per_node, "rank") + ". " + what + " You say " +
                             to_string(yours) + "; the link has " + to_string(true_link);
    if (!is_near(yours, true_link, 4 * tolerance, tolerance))
        throw Wrong(
            told + ".\n" + cause_of_link(nodes, ranks_per_node, yours) +
            "The seconds of an all-reduce are a line over its bytes. How many messages, and of "
            "how many bytes, follow one another in it?");
    for (const double bytes : {1e5, 3e6, 5e7}) {  // what the student was not shown
        const double predicted =
            bytes / simulated(nodes, ranks_per_node, 2, yours, bytes).bus_bandwidth;
        const double taken =
            bytes / simulated(nodes, ranks_per_node, 2, true_link, bytes).bus_bandwidth;
        if (!is_near(predicted, taken, 2 * tolerance))
            throw Wrong(told + ". For " + format_bytes(bytes) + " your link is wrong by " +
                        format_percent(predicted / taken - 1) + ".");
    }
    held();
}

void check_link() {
    const Disturb none = [](std::size_t) { return 0.0; };
    check_link_of(4, 3, none, 1e-6, "Eleven all-reduces, none of them disturbed.");
    check_link_of(2, 2, none, 1e-6, "Eleven all-reduces, none of them disturbed.");
    check_link_of(
        4, 2, [](std::size_t i) { return i == 0 || i == 8 || i == 10 ? 4.0 : 0; }, 1e-6,
        "Eleven all-reduces, of which three took five times as long as they should.");
    check_link_of(
        4, 2, [](std::size_t i) { return i == 3 || i == 9 ? 30.0 : noise(i); }, 0.05,
        "Eleven all-reduces, wrong by 2 % at most, and two took thirty times as long.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"robust", check_robust}, {"wire", check_wire}, {"link", check_link}};
}

}  // namespace ddp::test
