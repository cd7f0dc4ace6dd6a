// The exercise rail_trees: plans whose messages are followed one by one, and trees beside rings
// over a simulated network.
#include "exercises/21_cluster/rail_trees.hpp"

#include <cmath>

#include "common/report/units.hpp"
#include "exercises/support/plans.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

bool is_near(double yours, double right, double tolerance = 1e-9) {
    return std::abs(yours - right) <= tolerance * std::abs(right);  // false for NaN
}

int log2_rounded_up(int number) {
    int rounds = 0;
    while (1 << rounds < number)
        rounds++;
    return rounds;
}

std::string shape_text(int hosts, int ranks_per_host) {
    return "On " + format_count(hosts, "host") + " of " + format_count(ranks_per_host, "rank") +
           ": ";
}

// ---- Task tree_plan

// The parts of a rank's number, and of a node's along its rail.
struct Place {
    int hosts, ranks_per_host, rank;

    int host() const { return rank / ranks_per_host; }
    int rail() const { return rank % ranks_per_host; }
    int node() const { return (host() - rail() % hosts + hosts) % hosts; }
};

void check_rails(const MessagePlan& plan, int hosts, int ranks_per_host, const std::string& what) {
    for (const auto& round : plan.rounds)
        for (const PlannedMessage& message : round) {
            const Place from{hosts, ranks_per_host, message.from},
                to{hosts, ranks_per_host, message.to};
            if (from.host() == to.host())
                continue;
            const std::string sends = what + "rank " + std::to_string(message.from) + " sends to " +
                                      "rank " + std::to_string(message.to);
            if (from.rail() != to.rail())
                throw Wrong(sends + ", from place " + std::to_string(from.rail()) +
                            " of a host to place " + std::to_string(to.rail()) +
                            " of another one. A rail is the ranks with the same place.");
            if (message.first != from.rail() || message.count != 1)
                throw Wrong(sends + " and more than chunk " + std::to_string(from.rail()) +
                            ", or another one: rail " + std::to_string(from.rail()) +
                            " sums up this chunk only.");
        }
    held();
}

void check_sums(const MessagePlan& plan, int hosts, int ranks_per_host, const std::string& what) {
    const std::optional<WrongSum> wrong = wrong_sum(plan, hosts * ranks_per_host);
    if (!wrong)
        return held();
    const Place has{hosts, ranks_per_host, wrong->rank}, of{hosts, ranks_per_host, wrong->of};
    std::string hint;
    if (wrong->times > 0)
        hint =
            "What comes is added in the first round and on the way up, and replaces what a rank "
            "has on the way down and in the last round.";
    else if (wrong->chunk != has.rail())
        hint =
            "In the last round every rank sends the chunk of its place to each other rank of "
            "its host.";
    else if (wrong->chunk != of.rail())
        hint =
            "In the first round every rank sends to each other rank of its host the chunk of "
            "that rank's place, which adds it.";
    else
        hint = "Along rail " + std::to_string(has.rail()) + " the two are the nodes " +
               std::to_string(has.node()) + " and " + std::to_string(of.node()) +
               ". Does each node send upwards when it has the sum of those below it, and "
               "downwards when it has the sum of all?";
    throw Wrong(what + "at the end " + wrong->text() + ".\n" + hint);
}

// Returns the messages that each host sends by the contract: node n is the parent of as many nodes
// as it has zeros at its end, if there are so many.
std::vector<int> right_messages(int hosts, int ranks_per_host) {
    std::vector<int> messages(static_cast<std::size_t>(hosts));
    for (int rank = 0; rank < hosts * ranks_per_host; rank++) {
        const Place place{hosts, ranks_per_host, rank};
        int& count = messages[static_cast<std::size_t>(place.host())];
        count += place.node() > 0 ? 1 : 0;
        for (int distance = 1; distance < hosts && place.node() % (2 * distance) == 0;
             distance *= 2)
            count += place.node() + distance < hosts ? 1 : 0;
    }
    return messages;
}

void check_tree(const MessagePlan& plan, int hosts, int ranks_per_host, const std::string& what) {
    const std::size_t rounds =
        static_cast<std::size_t>(2 * log2_rounded_up(hosts) + (ranks_per_host > 1 ? 2 : 0));
    if (plan.rounds.size() != rounds)
        throw Wrong(what + "your plan has " + std::to_string(plan.rounds.size()) +
                    " rounds; by the contract it has " + std::to_string(rounds) +
                    ". In one round, all nodes at the same distance from their parents send, on "
                    "all rails.");
    const std::vector<int> per_host(static_cast<std::size_t>(hosts), ranks_per_host);
    const std::vector<int> sent = sent_by(plan, host_after_host(per_host)).messages;
    const std::vector<int> right = right_messages(hosts, ranks_per_host);
    for (std::size_t host = 0; host < right.size(); host++)
        if (sent[host] != right[host])
            throw Wrong(what + "host " + std::to_string(host) + " sends " +
                        format_count(sent[host], "message") +
                        " to other hosts, and by the contract " +
                        format_count(right[host], "message") +
                        ". Is the root of rail i on host i modulo H, and is the parent of node n "
                        "the node whose number has one power of two less?");
    held();
}

// Host after host along a rail, up and down: by the simulator where a byte takes 10 ns and a
// message 1 ms.
void check_seconds(const MessagePlan& plan, int hosts, int ranks_per_host,
                   const std::string& what) {
    const double bytes = 1e6, alpha_s = 1e-3, beta_s = 1e-8;
    const double yours =
        seconds_of(plan, hosts_with_ports(hosts, ranks_per_host, alpha_s, 1 / beta_s), bytes);
    const double right = 2 * log2_rounded_up(hosts) * (alpha_s + bytes / ranks_per_host * beta_s);
    if (!is_near(yours, right, 0.01))
        throw Wrong(what + "over links with 1 ms and 100 MB/s between hosts, 1 MB takes " +
                    format_seconds(yours) +
                    " by your plan; 2 log2(H) messages that follow one "
                    "another take " +
                    format_seconds(right) + ".");
    held();
}

void check_tree_plan() {
    constexpr struct {
        int hosts, ranks_per_host;
    } shapes[] = {{2, 1}, {4, 1}, {2, 2}, {4, 3}, {8, 2}, {3, 2}, {7, 3}, {2, 5}};
    for (const auto& [hosts, ranks_per_host] : shapes) {
        const std::string what = shape_text(hosts, ranks_per_host);
        trying(what + "your plan is asked for.");
        const MessagePlan plan = rail_tree_plan(hosts, ranks_per_host);
        trying("");
        if (plan.chunks != ranks_per_host)
            throw Wrong(what + "your array has " + format_count(plan.chunks, "chunk") +
                        ". There is one for each place of a host, " +
                        std::to_string(ranks_per_host) + ".");
        check_plan(plan, hosts * ranks_per_host);
        check_rails(plan, hosts, ranks_per_host, what);
        check_sums(plan, hosts, ranks_per_host, what);
        check_tree(plan, hosts, ranks_per_host, what);
        if (1 << log2_rounded_up(hosts) == hosts)
            check_seconds(plan, hosts, ranks_per_host, what);
    }
}

// ---- Task crossover

// Returns what a wrong size tells, or "".
std::string cause_of(const CostModel& message, int hosts, int ranks_per_host, double yours) {
    const double up = log2_rounded_up(hosts), ring = hosts - 1, ratio = ring / hosts;
    const double alpha = message.alpha_s, beta = message.beta_s_per_byte;
    const double per_rank = (ring - up) * alpha / ((up - ratio) * beta);
    const std::pair<double, const char*> wrongs[] = {
        {per_rank, "That is the size of one rank's chunk. The array has L of them.\n"},
        {per_rank * ranks_per_host * beta / alpha * beta / alpha,
         "alpha and beta have changed places.\n"},
        {per_rank * ranks_per_host * hosts, "The array has L chunks; H is not in that.\n"},
        {(ring - up) * alpha / (up * beta) * ranks_per_host, "You forget the bytes of the ring.\n"},
        {ring * alpha / ((up - ratio) * beta) * ranks_per_host,
         "You forget the latencies of the tree.\n"},
        {(ring - up) * alpha / ((up - 2 * ratio) * beta) * ranks_per_host,
         "Both go up and down, or round twice: you count the bytes of the ring twice, and those "
         "of the tree once.\n"}};
    for (const auto& [wrong, words] : wrongs)
        if (is_near(yours, wrong))
            return words;
    return "";
}

void check_crossover_of(const CostModel& message, int hosts, int ranks_per_host) {
    const double yours = trees_are_faster_up_to(message, hosts, ranks_per_host);
    const std::string what = shape_text(hosts, ranks_per_host) + "with " +
                             format_seconds(message.alpha_s) + " and " +
                             format_bandwidth(1 / message.beta_s_per_byte) + ", ";
    if (!(yours > 0 && std::isfinite(yours)))
        throw Wrong(what + "you say " + std::to_string(yours) +
                    " bytes, but for a few bytes trees are faster: they have fewer rounds.");
    const simulator::Cluster cluster =
        hosts_with_ports(hosts, ranks_per_host, message.alpha_s, 1 / message.beta_s_per_byte);
    const MessagePlan trees = rail_tree_plan(hosts, ranks_per_host),
                      rings = rail_ring_plan(hosts, ranks_per_host);
    for (const double factor : {0.97, 1.03}) {
        const double bytes = factor * yours;
        const double tree_s = seconds_of(trees, cluster, bytes),
                     ring_s = seconds_of(rings, cluster, bytes);
        if ((tree_s < ring_s) != (factor < 1))
            throw Wrong(what + "you say that trees are faster up to " + format_bytes(yours) +
                        ". An array of " + format_bytes(bytes) + " takes " +
                        format_seconds(tree_s) + " by trees and " + format_seconds(ring_s) +
                        " by rings.\n" + cause_of(message, hosts, ranks_per_host, yours) +
                        "Write down both times, and set them equal.");
    }
    held();
}

void check_crossover() {
    check_crossover_of({1e-3, 1e-8}, 8, 1);
    check_crossover_of({1e-3, 1e-8}, 8, 4);
    check_crossover_of({14e-6, 1 / 48e9}, 16, 8);
    check_crossover_of({50e-6, 8e-9}, 4, 3);
    check_crossover_of({14e-6, 1 / 48e9}, 128, 2);
    const double with_two = trees_are_faster_up_to({1e-3, 1e-8}, 2, 4);
    if (with_two != 0)
        throw Wrong("On 2 hosts of 4 ranks: you say " + std::to_string(with_two) +
                    " bytes. With two hosts both have two rounds between hosts, and the messages "
                    "of the ring are half as long: it is faster for every size, and the answer is "
                    "0.");
    held();
}

}  // namespace

std::vector<Task> tasks() {
    return {{"tree_plan", check_tree_plan}, {"crossover", check_crossover}};
}

}  // namespace ddp::test
