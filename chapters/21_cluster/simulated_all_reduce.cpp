// The rounds of each algorithm, here for two nodes of two ranks, and the ports that they pass. An
// arrow is a message in a round; ranks 0 and 1 are on node 0.
//
//     flat ring      0 ▶ 1 ▶ 2 ▶ 3 ▶ 0            6 rounds of a quarter; 1 ▶ 2 and 3 ▶ 0 leave
//     ring by node   0 ▶ 2 ▶ 1 ▶ 3 ▶ 0            6 rounds of a quarter; all four leave
//     two levels     0 ◀▶ 1  2 ◀▶ 3               1 round of a half, inside
//                    0 ◀▶ 2  1 ◀▶ 3               2 rounds of a quarter, along each rail
//                    0 ◀▶ 1  2 ◀▶ 3               1 round of a half, inside
//     double tree    1 ▶ 0   3 ▶ 2, then 2 ▶ 0    up and down again; the other half of the data
//                    1 ▶ 0   3 ▶ 2, then 0 ▶ 2    goes by the other tree
//     directly       all to all, twice            each rank adds up one quarter
//
//     a message      port of the sender ──▶ leaf switches, if any ──▶ port of the receiver
//     within a node  the ports of both ranks; between nodes those of both nodes
//
// First come the schedules, which only say who sends what to whom; then Network, which knows when a
// port is free; and last simulated_s, which sends the messages in the order of time.
#include "21_cluster/simulated_all_reduce.hpp"

#include <initializer_list>

namespace ddp::simulator {
namespace {

// Returns how many rings, or pairs of trees, can have a port of their own on every node.
int copies_on(const Cluster& cluster) {
    return cluster.nodes > 1 ? std::min(cluster.ports, cluster.ranks_per_node) : 1;
}

// Returns the rounds of all phases, one phase after the other.
Rounds in_turn(std::initializer_list<Rounds> phases) {
    Rounds all;
    for (const Rounds& phase : phases)
        all.insert(all.end(), phase.begin(), phase.end());
    return all;
}

// Returns the rounds in which `ranks` ranks pass chunks on to the next one.
Rounds ring(const Partner& next, int ranks, double bytes) {
    return Rounds(2 * static_cast<std::size_t>(ranks - 1),
                  {.partner = next, .bytes = bytes / ranks});
}

// The next rank is the next number: only the last rank of a node sends to another node.
Schedule flat_ring(const Cluster& cluster, double bytes) {
    const int ranks = cluster.ranks(), copies = copies_on(cluster);
    const auto next = [=](int rank) { return rank + 1 == ranks ? 0 : rank + 1; };
    return {.parts = {ring(next, ranks, bytes / copies)}, .copies = copies};
}

// The next rank is on the next node: every message leaves its node.
Schedule ring_by_node(const Cluster& cluster, double bytes) {
    const int ranks = cluster.ranks(), local = cluster.ranks_per_node;
    const auto next = [=](int rank) {
        return rank + local < ranks ? rank + local : (rank + 1) % local;
    };
    return {.parts = {ring(next, ranks, bytes)}};
}

// Returns the rounds in which each rank sends a chunk to all others of its group, which are `group`
// ranks with consecutive numbers. None of these messages waits for another.
Rounds exchange(int group, double bytes) {
    Rounds rounds;
    for (int step = 1; step < group; step++) {
        const auto other = [=](int rank) { return rank / group * group + (rank + step) % group; };
        rounds.push_back({.partner = other, .bytes = bytes / group, .waits = step == 1});
    }
    return rounds;
}

// Reduce-scatter on each node, a ring along each rail (the ranks with one place on their nodes),
// and all-gather on each node. Slices let the three overlap.
Schedule two_levels(const Cluster& cluster, double bytes) {
    const int ranks = cluster.ranks(), local = cluster.ranks_per_node;
    const int slices = std::clamp(static_cast<int>(bytes / (1 << 20)), 1, 4);
    const double slice = bytes / slices;
    const auto next = [=](int rank) { return rank + local < ranks ? rank + local : rank % local; };
    const Rounds inside = exchange(local, slice);
    return {.parts = {in_turn({inside, ring(next, cluster.nodes, slice / local), inside})},
            .slices = slices};
}

// Every rank sends each other one its chunk, and then the sum of its own.
Schedule directly(const Cluster& cluster, double bytes) {
    const Rounds phase = exchange(cluster.ranks(), bytes);
    return {.parts = {in_turn({phase, phase})}};
}

// Up a chain on each node and a tree of nodes, and down the same way. In the tree the nodes have
// the numbers 0, 1, 2 ... from left to right, with 0 on top: odd numbers are leaves, their parents
// are on level 2, and so on. In the other tree a node whose number was odd has an even one.
Rounds tree(const Cluster& cluster, double bytes, bool is_other) {
    const int nodes = cluster.nodes, local = cluster.ranks_per_node;
    const auto number_of = [=](int node) {  // its own inverse
        return !is_other ? node : nodes % 2 == 0 ? nodes - 1 - node : (nodes - node) % nodes;
    };
    Rounds rounds;
    for (int place = local - 1; place > 0; place--)
        rounds.push_back(
            {.partner = [=](int rank) { return rank % local == place ? rank - 1 : -1; },
             .bytes = bytes});
    for (int level = 1; level < nodes; level *= 2) {
        const auto parent = [=](int rank) {
            const int number = number_of(rank / local);
            if (rank % local != 0 || (number & -number) != level)
                return -1;
            const int left = number - level, above = left | 2 * level;
            return local * number_of(above < nodes ? above : left);
        };
        rounds.push_back({.partner = parent, .bytes = bytes});
    }
    for (std::size_t i = rounds.size(); i-- > 0;)
        rounds.push_back({.partner = rounds[i].partner, .bytes = bytes, .reversed = true});
    return rounds;
}

// Two trees with half of the data each. Leaves of one are inner nodes of the other, so all ports
// are busy both ways (Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast,
// reduction and scan", Parallel Computing 2009).
Schedule double_tree(const Cluster& cluster, double bytes) {
    const int copies = copies_on(cluster);
    const double half = bytes / copies / 2;
    const int slices = std::clamp(static_cast<int>(half / (1 << 15)), 1, 64);
    const double slice = half / slices;
    // A slice of both trees passes a port 4 (H - 1) / H times, on average.
    const double pace_s = 4.0 * (cluster.nodes - 1) / cluster.nodes * cluster.between.busy_s(slice);
    return {.parts = {tree(cluster, slice, false), tree(cluster, slice, true)},
            .slices = slices,
            .pace_s = pace_s,
            .copies = copies};
}

// The times until which a port is busy; it sends and receives at the same time.
struct Port {
    double sends_until = 0, receives_until = 0;
};

// Passes a message that is ready at `ready_s`: behind others through the one port and, while its
// bytes come, behind others through the other. Returns when the last byte is out.
double pass(Port& from, Port& to, double ready_s, double busy_s) {
    from.sends_until = std::max(from.sends_until, ready_s) + busy_s;
    return to.receives_until = std::max(to.receives_until + busy_s, from.sends_until);
}

// One slice of one part on its way through the rounds.
struct SliceInFlight {
    std::vector<double> has;    // since when each rank has all that it was sent
    std::vector<double> ready;  // the same at the last round that waited
    double latest = 0;          // when the last of its messages so far has arrived
    std::size_t next_round = 0;
};

// The ports of ranks, nodes and leaf switches: as many as ranks, and some are not used.
struct Network {
    const Cluster& cluster;
    const int copies;
    std::vector<Port> inside, between, leaves;

    // Returns when a message arrives: it passes the ports of two ranks; or two leaf switches, if
    // there are any between the ranks, and the ports of two nodes.
    double arrival_s(int from, int to, double ready_s, double bytes) {
        const int local = cluster.ranks_per_node;
        if (from / local == to / local)
            return pass(inside[from], inside[to], ready_s, copies * cluster.inside.busy_s(bytes)) +
                   cluster.inside.latency_s;
        const double busy_s = cluster.between.busy_s(bytes);
        const int leaf = cluster.nodes_per_leaf * local;
        if (leaf > 0 && from / leaf != to / leaf) {
            const double ports_of_leaf = 1.0 * cluster.nodes_per_leaf * cluster.ports / copies;
            const double leaf_s = busy_s / ports_of_leaf * cluster.oversubscription;
            ready_s = pass(leaves[from / leaf], leaves[to / leaf], ready_s, leaf_s);
        }
        const int ports = copies > 1 ? 1 : cluster.ports;
        const auto port = [=](int rank) { return rank - rank % local + rank % local % ports; };
        return pass(between[port(from)], between[port(to)], ready_s, busy_s) +
               cluster.between.latency_s;
    }

    // Sends the messages of the slice's next round.
    void send(const Round& round, SliceInFlight& slice) {
        if (round.waits)
            slice.ready = slice.has;
        for (int rank = 0; rank < cluster.ranks(); rank++)
            if (const int partner = round.partner(rank); partner >= 0) {
                const int from = round.reversed ? partner : rank;
                const int to = round.reversed ? rank : partner;
                const double time_s = arrival_s(from, to, slice.ready[from], round.bytes);
                slice.has[to] = std::max(slice.has[to], time_s);
                slice.latest = std::max(slice.latest, time_s);
            }
    }
};

}  // namespace

Schedule schedule(Algorithm algorithm, const Cluster& cluster, double bytes) {
    static constexpr decltype(&flat_ring) schedules[] = {flat_ring, ring_by_node, two_levels,
                                                         double_tree, directly};
    return schedules[static_cast<int>(algorithm)](cluster, bytes);
}

double simulated_s(const Cluster& cluster, const Schedule& schedule) {
    const auto ranks = static_cast<std::size_t>(cluster.ranks());
    const std::size_t parts = schedule.parts.size(), rounds = schedule.parts[0].size();
    SliceInFlight start;
    start.has.resize(ranks);  // at 0 s every rank has its own data
    std::vector<SliceInFlight> slices(parts * static_cast<std::size_t>(schedule.slices), start);
    for (std::size_t i = 0; i < slices.size(); i++)
        slices[i].latest = static_cast<double>(i / parts) * schedule.pace_s;
    const std::vector<Port> ports(ranks);
    Network network{.cluster = cluster,
                    .copies = schedule.copies,
                    .inside = ports,
                    .between = ports,
                    .leaves = ports};
    // The slice whose data has come first sends first: messages pass the ports in order of time.
    const auto turn = [&](const SliceInFlight& slice) {
        return std::pair(slice.next_round == rounds, slice.latest);
    };
    for (std::size_t i = 0; i < slices.size() * rounds; i++) {
        const auto slice = std::ranges::min_element(slices, {}, turn);
        const auto part = static_cast<std::size_t>(slice - slices.begin()) % parts;
        network.send(schedule.parts[part][slice->next_round++], *slice);
    }
    return std::ranges::max_element(slices, {}, &SliceInFlight::latest)->latest;
}

}  // namespace ddp::simulator
