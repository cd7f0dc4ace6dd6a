// The exercise leaders: plans whose messages are followed one by one, and what their ports carry.
#include "exercises/21_cluster/leaders.hpp"

#include <cmath>
#include <numeric>

#include "common/report/units.hpp"
#include "exercises/support/plans.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

bool is_near(double yours, double right, double tolerance = 1e-9) {
    return std::abs(yours - right) <= tolerance * std::abs(right);  // false for NaN
}

// ---- Task leader_plan

struct PlanCase {
    std::vector<int> ranks_on_host;
    HostOf host_of = host_after_host(ranks_on_host);
    int hosts = static_cast<int>(ranks_on_host.size());
    int ranks = static_cast<int>(host_of.size());

    bool is_leader(int rank) const {
        const auto r = static_cast<std::size_t>(rank);
        return r == 0 || host_of[r] != host_of[r - 1];
    }
};

void check_speakers(const PlanCase& now, const MessagePlan& plan, const std::string& what) {
    for (const auto& round : plan.rounds)
        for (const PlannedMessage& message : round)
            for (const int rank : {message.from, message.to})
                if (now.host_of[static_cast<std::size_t>(message.from)] !=
                        now.host_of[static_cast<std::size_t>(message.to)] &&
                    !now.is_leader(rank))
                    throw Wrong(what + "rank " + std::to_string(message.from) + " sends to rank " +
                                std::to_string(message.to) + " on another host, but rank " +
                                std::to_string(rank) +
                                " is no leader. The leader of host h is the first rank of that "
                                "host, behind all ranks of the hosts before it.");
    const Sent sent = sent_by(plan, now.host_of);
    const auto silent = std::ranges::find(sent.messages, 0);
    if (silent != sent.messages.end())
        throw Wrong(what + "host " + std::to_string(silent - sent.messages.begin()) +
                    " sends nothing to other hosts. The leader of host h is the first rank of that "
                    "host, behind all ranks of the hosts before it.");
    held();
}

void check_sums(const PlanCase& now, const MessagePlan& plan, const std::string& what) {
    const std::optional<WrongSum> wrong = wrong_sum(plan, now.ranks);
    if (!wrong)
        return held();
    std::string hint;
    if (wrong->times > 0)
        hint = "What is complete replaces what a rank has; only the first half of the ring adds.";
    else if (!now.is_leader(wrong->rank))
        hint = "In the last round each leader sends the whole sum to the ranks of its host.";
    else if (!now.is_leader(wrong->of))
        hint = "In round 0 each rank that is no leader sends its array to its leader, which adds.";
    else
        hint =
            "Round the ring, the first H - 1 rounds leave one complete chunk with each leader; "
            "the H - 1 after them bring it to the others.";
    throw Wrong(what + "at the end " + wrong->text() + ".\n" + hint);
}

// The leaders' ring, by the bytes, the messages and the seconds it takes.
void check_ring(const PlanCase& now, const MessagePlan& plan, const std::string& what) {
    const int steps = 2 * (now.hosts - 1);
    const Sent sent = sent_by(plan, now.host_of);
    for (std::size_t host = 0; host < sent.shares.size(); host++) {
        if (!is_near(sent.shares[host], 1.0 * steps / now.hosts))
            throw Wrong(what + "from host " + std::to_string(host) + " go " +
                        format_fixed(sent.shares[host], 3) +
                        " K bytes to other hosts, where K are those of the array; round the ring "
                        "of leaders it is 2 (H - 1) / H K = " +
                        format_fixed(1.0 * steps / now.hosts, 3) +
                        " K. Each of its messages is one of H chunks.");
        if (sent.messages[host] != steps)
            throw Wrong(what + "host " + std::to_string(host) + " sends " +
                        format_count(sent.messages[host], "message") +
                        " to other hosts; round the ring of leaders it is one in each of "
                        "2 (H - 1) = " +
                        std::to_string(steps) + " rounds.");
    }
    const std::size_t rounds = static_cast<std::size_t>(steps + (now.ranks > now.hosts ? 2 : 0));
    if (plan.rounds.size() != rounds)
        throw Wrong(what + "your plan has " + std::to_string(plan.rounds.size()) +
                    " rounds; by the contract it has " + std::to_string(rounds) + ".");
    held();
}

// How long it takes where a byte takes 10 ns and a message 1 ms.
void check_seconds(const PlanCase& now, const MessagePlan& plan, const std::string& what) {
    const double bytes = 1e6, alpha_s = 1e-3, beta_s = 1e-8;
    const int per_host = now.ranks_on_host[0];
    const double yours =
        seconds_of(plan, hosts_with_ports(now.hosts, per_host, alpha_s, 1 / beta_s), bytes);
    const double right = 2 * (now.hosts - 1) * (alpha_s + bytes / now.hosts * beta_s);
    if (!is_near(yours, right, 0.01))
        throw Wrong(what + "over links with 1 ms and 100 MB/s between hosts, 1 MB takes " +
                    format_seconds(yours) + " by your plan; a ring of leaders takes " +
                    format_seconds(right) +
                    ".\nIn each round every leader sends one chunk to the next leader: the one "
                    "that it was sent in the round before.");
    held();
}

void check_leader_plan() {
    const std::vector<int> shapes[] = {{1, 1},    {2, 2}, {3, 3, 3, 3},
                                       {2, 1, 3}, {1, 4}, {2, 2, 2, 2, 2}};
    for (const std::vector<int>& ranks_on_host : shapes) {
        const PlanCase now{ranks_on_host};
        const std::string what = "On " + hosts_text(ranks_on_host) + ": ";
        trying(what + "your plan is asked for.");
        const MessagePlan plan = leader_plan(ranks_on_host);
        trying("");
        if (plan.chunks != now.hosts)
            throw Wrong(what + "your array has " + std::to_string(plan.chunks) +
                        " chunks. The ring is one of H leaders, so there are H.");
        check_plan(plan, now.ranks);
        check_speakers(now, plan, what);
        check_sums(now, plan, what);
        check_ring(now, plan, what);
        if (ranks_on_host.front() == ranks_on_host.back() &&
            now.hosts * ranks_on_host[0] == now.ranks)
            check_seconds(now, plan, what);
    }
}

// ---- Task port_load

// Returns the load of the busiest port, counted in a plan.
PortLoad counted(const MessagePlan& plan, const EvenHosts& cluster, double bytes) {
    const int per_host = cluster.ranks_per_host;
    const auto ports = static_cast<std::size_t>(cluster.hosts * cluster.ports);
    std::vector<PortLoad> loads(ports);
    for (const auto& round : plan.rounds)
        for (const PlannedMessage& message : round) {
            const int host = message.from / per_host;
            if (host == message.to / per_host)
                continue;
            const int port = host * cluster.ports + message.from % per_host % cluster.ports;
            loads[static_cast<std::size_t>(port)].messages++;
            loads[static_cast<std::size_t>(port)].bytes += bytes * message.count / plan.chunks;
        }
    return *std::ranges::max_element(loads, {}, &PortLoad::messages);
}

std::string text_of(const PortLoad& load) {
    return std::to_string(load.messages) + " messages with " + format_fixed(load.bytes, 1) +
           " bytes";
}

// Returns what wrong bytes tell, or "".
std::string cause_of(const EvenHosts& cluster, bool is_rails, double bytes, const PortLoad& yours,
                     const PortLoad& right) {
    const int hosts = cluster.hosts, ranks = hosts * cluster.ranks_per_host;
    if (!is_rails && is_near(yours.bytes, right.bytes / cluster.ranks_per_host))
        return "You divide by L and then by H, as rails do. A leader has the sum of all L ranks of "
               "its host, and sends all of it.\n";
    if (is_near(yours.bytes, right.bytes / 2))
        return "That is half of it: the sums go round the ring, too.\n";
    if (is_near(yours.bytes, right.messages * bytes))
        return "A message is a chunk, and not the whole array.\n";
    if (is_near(yours.bytes, 2.0 * (ranks - 1) / ranks * bytes))
        return "That is one ring of all ranks.\n";
    if (is_rails && is_near(yours.bytes, 2.0 * (hosts - 1) / ranks * bytes))
        return "That is one rail. Where there are fewer ports than ranks, a port has several.\n";
    if (is_rails && is_near(yours.bytes, 2.0 * (hosts - 1) / hosts * bytes))
        return "That is the whole host. Its rails use several ports.\n";
    return "";
}

void check_load(const EvenHosts& cluster, bool is_rails, const std::string& hint) {
    const double bytes = 1200;
    const PortLoad yours = is_rails ? rail_load(cluster, bytes) : leader_load(cluster, bytes);
    const std::vector<int> shape(static_cast<std::size_t>(cluster.hosts), cluster.ranks_per_host);
    const PortLoad right = counted(
        is_rails ? rail_ring_plan(cluster.hosts, cluster.ranks_per_host) : leader_plan(shape),
        cluster, bytes);
    if (yours.messages == right.messages && is_near(yours.bytes, right.bytes))
        return held();
    throw Wrong(std::to_string(cluster.hosts) + " hosts of " +
                std::to_string(cluster.ranks_per_host) + " ranks, with " +
                std::to_string(cluster.ports) + (cluster.ports == 1 ? " port" : " ports") +
                " each, an array of 1200 bytes, " + (is_rails ? "by rails" : "by leaders") +
                ": the busiest port sends " + text_of(right) + ", counted in " +
                (is_rails ? "the plan" : "your plan") + "; you say " + text_of(yours) + ".\n" +
                cause_of(cluster, is_rails, bytes, yours, right) + hint);
}

void check_port_load() {
    check_load({4, 3, 3}, false, "Of three ports, leaders use one.");
    check_load({2, 2, 1}, false, "One rank of the host speaks, whatever the others do.");
    check_load({3, 1, 1}, false, "Three hosts: 2 (H - 1) messages with a third of the array each.");
    check_load({2, 2, 2}, true, "Each rail has a port, and half of the array.");
    check_load({4, 3, 1}, true, "All rails of a host use the one port.");
    check_load({4, 4, 2}, true, "Two rails use each port.");
    check_load({3, 5, 2}, true,
               "Five rails and two ports: the places 0, 2 and 4 use port 0, which sends most.");
    check_load({3, 1, 1}, true, "One rank a host: one rail.");
}

// ---- Task divisors

void check_divisors_of(const std::vector<int>& ranks_on_host, const std::string& hint) {
    const std::vector<double> divisors = leader_divisors(ranks_on_host);
    const std::string what = "On " + hosts_text(ranks_on_host) + ": ";
    if (divisors.size() != ranks_on_host.size())
        throw Wrong(what + "you return " + std::to_string(divisors.size()) +
                    " divisors, and there are " + std::to_string(ranks_on_host.size()) + " hosts.");
    const int ranks = std::accumulate(ranks_on_host.begin(), ranks_on_host.end(), 0);
    // Rank r has r + 1.
    double result = 0, right = 0, mean_of_means = 0;
    int rank = 0;
    for (std::size_t host = 0; host < divisors.size(); host++) {
        double sum = 0;
        for (int i = 0; i < ranks_on_host[host]; i++)
            sum += ++rank;
        result += sum / divisors[host];
        right += sum / ranks;
        mean_of_means += sum / ranks_on_host[host] / static_cast<double>(divisors.size());
    }
    if (is_near(result, right))
        return held();
    std::string cause;
    if (is_near(result, mean_of_means))
        cause =
            "You divide by L and then by H. That is the mean of the hosts' means, in which a "
            "rank counts more if its host has few ranks.\n";
    else if (is_near(result, right * ranks))
        cause = "That is the sum.\n";
    else if (is_near(result, mean_of_means * static_cast<double>(divisors.size())))
        cause = "That adds up the means of the hosts.\n";
    throw Wrong(what + "the ranks have 1, 2, ..., " + std::to_string(ranks) + ", and the mean is " +
                format_fixed(right, 3) + "; with your divisors it is " + format_fixed(result, 3) +
                ".\n" + cause + hint);
}

void check_divisors() {
    check_divisors_of({3, 1}, "Each of the four summands counts a quarter.");
    check_divisors_of({1, 2, 4}, "Each of the seven summands counts a seventh.");
    check_divisors_of({2, 2}, "Where all hosts are equal, several ways are right.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"leader_plan", check_leader_plan},
            {"port_load", check_port_load},
            {"divisors", check_divisors}};
}

}  // namespace ddp::test
