// The rounds of each algorithm, here for two nodes of two ranks, and the ports that messages pass.
// An arrow is a message; ranks 0 and 1 are on node 0.
//
//     flat ring      0 ▶ 1 ▶ 2 ▶ 3 ▶ 0            6 rounds of a quarter; 1 ▶ 2 and 3 ▶ 0 leave
//     two levels     0 ◀▶ 1  2 ◀▶ 3               1 round of a half, inside
//                    0 ◀▶ 2  1 ◀▶ 3               2 rounds of a quarter, along each rail
//                    0 ◀▶ 1  2 ◀▶ 3               1 round of a half, inside
//     double tree    1 ▶ 0   3 ▶ 2, then 2 ▶ 0    up and down again; the other half of the data
//                    1 ▶ 0   3 ▶ 2, then 0 ▶ 2    goes by the other tree
//
//     a message      port of the sender ──▶ leaf switches, if any ──▶ port of the receiver
//     within a node  the ports of both ranks; between nodes those of both nodes
//
// The schedules come first and only list the messages. Network knows when a port is free, and
// simulated_s sends the messages in order of time.
#include "21_cluster/simulated_all_reduce.hpp"

#include <initializer_list>

namespace ddp::simulator {
namespace {

// Returns the rounds of all phases, one phase after the other.
Rounds in_turn(std::initializer_list<Rounds> phases) {
    Rounds all;
    for (const Rounds& phase : phases)
        all.insert(all.end(), phase.begin(), phase.end());
    return all;
}

// Returns the rounds in which each of `ranks` ranks passes chunks to the next.
Rounds ring(const Partner& next, int ranks, double bytes) {
    return Rounds(2 * static_cast<std::size_t>(ranks - 1),
                  {.partner = next, .bytes = bytes / ranks});
}

// The next rank is the next number: only the last rank of a node sends to another node.
Schedule flat_ring(const Cluster& cluster, double bytes) {
    const int ranks = cluster.ranks(), copies = cluster.copies();
    const auto next = [=](int rank) { return rank + 1 == ranks ? 0 : rank + 1; };
    return {.parts = {ring(next, ranks, bytes / copies)}, .copies = copies};
}

// Returns the rounds in which each rank sends a chunk to all others of its group: `group` ranks
// with consecutive numbers. These messages don't wait for each other.
Rounds exchange(int group, double bytes) {
    Rounds rounds;
    for (int step = 1; step < group; step++) {
        const auto other = [=](int rank) { return rank / group * group + (rank + step) % group; };
        rounds.push_back({.partner = other, .bytes = bytes / group, .waits = step == 1});
    }
    return rounds;
}

// Reduce-scatter on each node, a ring along each rail (ranks with the same local rank), all-gather
// on each node. Slices let the three overlap.
Schedule two_levels(const Cluster& cluster, double bytes) {
    const int ranks = cluster.ranks(), local = cluster.ranks_per_node;
    const int slices = std::clamp(static_cast<int>(bytes / (1 << 20)), 1, 4);
    const double slice = bytes / slices;
    const auto next = [=](int rank) { return rank + local < ranks ? rank + local : rank % local; };
    const Rounds inside = exchange(local, slice);
    return {.parts = {in_turn({inside, ring(next, cluster.nodes, slice / local), inside})},
            .slices = slices};
}

// A port sends and receives at the same time.
struct Port {
    double sends_until = 0, receives_until = 0;
};

// Passes a message that is ready at `ready_s` through both ports: it queues at each, and the second
// forwards bytes as they come. Returns the time at which the last byte is out.
double pass(Port& from, Port& to, double ready_s, double busy_s) {
    from.sends_until = std::max(from.sends_until, ready_s) + busy_s;
    return to.receives_until = std::max(to.receives_until + busy_s, from.sends_until);
}

// One slice of one part on its way through the rounds.
struct SliceInFlight {
    std::vector<double> has;    // when each rank received its latest message
    std::vector<double> ready;  // `has`, at the last round that waited
    double latest = 0;          // when the latest message of all arrived
    std::size_t next_round = 0;
};

// The ports of ranks, nodes and leaf switches, each a vector with an entry per rank (some unused).
struct Network {
    const Cluster& cluster;
    const int copies;
    std::vector<Port> inside, between, leaves;

    // Returns the arrival time of a message. Within a node it passes the ports of two ranks;
    // between nodes two leaf switches, where they differ, and the ports of two nodes.
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
    static constexpr decltype(&flat_ring) schedules[] = {flat_ring, two_levels, double_tree};
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
    // The slice with the earliest data sends first: messages pass the ports in order of time.
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
