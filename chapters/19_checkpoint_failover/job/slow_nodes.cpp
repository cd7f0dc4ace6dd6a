//     node0 --- 2 ms --- node1 --- 3 ms --- node2 --- 530 ms --- node3 --- 520 ms --- node0
//                                                                  |
//                                          slow to both of its neighbours: it is this one
//
//     1. each pair in its turn   a message to the next node and back, twice; the better time counts
//     2. all ranks               exchange the times
//     3. each node               is slow if it is far slower than the fastest pair, on both sides
#include "19_checkpoint_failover/job/slow_nodes.hpp"

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "common/report/bench.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr std::size_t message_bytes = 64 << 10;

// A pair is far slower than the fastest one if it takes ten times as long, and 80 ms (13 Mbit/s).
// From 250 ms (4 Mbit/s) on it is so in any case: two nodes have only one pair.
double limit_of(double fastest_s) {
    return 10 * std::clamp(fastest_s, 0.008, 0.025);
}

// Returns the first rank of each node.
std::vector<int> first_ranks(const Job& job) {
    std::vector<int> ranks;
    for (int rank = 0; rank < job.world_size(); rank++)
        if (job.members[static_cast<std::size_t>(rank)].local_rank == 0)
            ranks.push_back(rank);
    return ranks;
}

// Sends the data to rank `peer` and receives it, or the other way round. Returns the seconds.
double round_trip(Communicator& communicator, ArenaBuffer<float>& data, int peer, bool begins,
                  Stream& stream) {
    const Stopwatch watch;
    for (const bool sends : {begins, !begins})
        if (sends)
            communicator.send(data.data(), data.size(), peer, stream, "round trip");
        else
            communicator.receive(data.data(), data.size(), peer, stream, "round trip");
    communicator.synchronize(stream);
    return watch.seconds();
}

// Returns whether the line says that the node is slow. Either may know it by a longer name: node0
// and node0.cluster.
bool is_about(const StatusLine& status, const std::string& node) {
    const auto short_name = [](const std::string& text) {
        return text.substr(0, text.find_first_of(". "));
    };
    return status.what == slow_node_line && short_name(status.value) == short_name(node);
}

}  // namespace

std::size_t round_trip_arena_bytes() {
    return message_bytes + SharedArena::unit;
}

std::vector<RoundTrip> time_round_trips(Communicator& communicator, Stream& stream) {
    Rank& rank = communicator.rank();
    const std::vector<int> first = first_ranks(rank.job());
    if (first.size() < 2)
        return {};
    ArenaBuffer<float> data = communicator.allocate<float>(message_bytes / sizeof(float));
    double mine_s = 0;
    for (std::size_t i = 0; i < first.size(); i++) {
        const int from = first[i], to = first[(i + 1) % first.size()];
        rank.barrier();  // no other pair disturbs this one
        if (rank.rank() != from && rank.rank() != to)
            continue;
        const bool begins = rank.rank() == from;
        // The first one may make a connection.
        const double first_s = round_trip(communicator, data, begins ? to : from, begins, stream);
        const double second_s = round_trip(communicator, data, begins ? to : from, begins, stream);
        if (begins)
            mine_s = std::min(first_s, second_s);
    }
    const std::vector<double> seconds = rank.all_gather(mine_s);
    std::vector<RoundTrip> round_trips;
    for (std::size_t i = 0; i < first.size(); i++) {
        const auto node_of = [&](int r) {
            return rank.job().members[static_cast<std::size_t>(r)].node;
        };
        round_trips.push_back({node_of(first[i]), node_of(first[(i + 1) % first.size()]),
                               seconds[static_cast<std::size_t>(first[i])]});
    }
    return round_trips;
}

std::vector<SlowNode> slow_nodes(const std::vector<RoundTrip>& round_trips) {
    std::vector<SlowNode> slow;
    if (round_trips.empty())
        return slow;
    const RoundTrip& fastest = *std::ranges::min_element(round_trips, {}, &RoundTrip::seconds);
    const double limit_s = limit_of(fastest.seconds);
    for (std::size_t i = 0; i < round_trips.size(); i++) {
        const RoundTrip& after = round_trips[i];
        const RoundTrip& before = round_trips[i == 0 ? round_trips.size() - 1 : i - 1];
        if (std::min(before.seconds, after.seconds) <= limit_s)
            continue;
        std::string text = after.from +
                           " is slow: " + format_bytes(static_cast<double>(message_bytes)) +
                           " to " + after.to + " and back take " + format_seconds(after.seconds);
        if (fastest.seconds < limit_s)
            text += ", and from " + fastest.from + " to " + fastest.to + " and back " +
                    format_seconds(fastest.seconds);
        slow.push_back({after.from, text});
    }
    return slow;
}

SlowNodeWatch::SlowNodeWatch(Communicator& communicator, Stream& stream)
    : communicator_(communicator), stream_(stream) {
    look(0);
}

void SlowNodeWatch::look(int step) {
    const bool is_rank_0 = communicator_.rank().rank() == 0;
    std::string again;
    for (const auto& [name, text] : slow_nodes(time_round_trips(communicator_, stream_))) {
        const bool is_new = named_.insert(name).second;
        if (is_rank_0)
            send_to_supervisor({0, slow_node_line, step, text});
        if (is_new && is_rank_0 && !has_supervisor())
            std::cout << "note: " << text << "." << std::endl;
        if (!is_new && has_supervisor())
            again = text;
    }
    if (!again.empty())
        throw std::runtime_error(again + "; so it was before");
}

std::vector<NodeSlots> without_slow_nodes(const std::vector<NodeSlots>& nodes,
                                          const std::vector<Attempt>& before) {
    const auto times_named = [&](const NodeSlots& node) {
        std::ptrdiff_t times = 0;
        for (const Attempt& attempt : before)
            times += std::ranges::count_if(attempt.status_lines, [&](const TimedStatus& each) {
                return is_about(each.status, node.name);
            });
        return times;
    };
    std::vector<NodeSlots> left;
    for (const NodeSlots& node : nodes)
        if (times_named(node) < 2)
            left.push_back(node);
    if (left.empty() && !nodes.empty())
        left.push_back(nodes[0]);  // alone, it needs no network
    return left;
}

}  // namespace ddp
