#include "07_broadcast/show/algorithms.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "common/gpu/clock.hpp"
#include "common/report/bench.hpp"
#include "common/report/stats.hpp"

namespace ddp {
namespace {

// Now, and when the last byte came in over the simulated link (before its latency).
struct LinkClock {
    std::uint64_t now_ns, last_byte_ns;
};

__global__ void read_link_clock(const __grid_constant__ PeersView view, LinkClock* clock) {
    *clock = {device_clock_ns(), view.own().in_port_ns};
}

// Returns the rank that has the data last in the algorithms that go round the ranks.
int left_of(int root, int ranks) {
    return (root + ranks - 1) % ranks;
}

// The root serves its own pair last; rank 0 has one whatever the number of ranks.
int other_of_first_pair(int root, int ranks) {
    return root == 0 && ranks > 1 ? 1 : 0;
}

// Both cut the data as the broadcasts do.
double cut_at_once_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return all_at_once_seconds(message, ranks, bytes, default_slices(bytes));
}
double cut_chain_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return chain_seconds(message, ranks, bytes, default_slices(bytes));
}

// The data that rank 0 sends, and that all ranks must have afterwards.
class Payload {
  public:
    Payload(Peers& peers, std::size_t bytes)
        : data_(peers.allocate<int>(bytes / sizeof(int))), expected_(data_.size()) {
        std::iota(expected_.begin(), expected_.end(), 0);
        data_.copy_from(peers.rank().rank() == 0 ? expected_ : std::vector<int>(data_.size(), -1));
    }

    Call broadcast_from(int root, const std::string& name) {
        return broadcast_call(data_.data(), data_.size(), root, name);
    }
    void require_here(const BroadcastAlgorithm& algorithm) const {
        const std::vector<int> here = data_.to_host_now();
        const auto wrong = std::ranges::mismatch(here, expected_).in1 - here.begin();
        if (wrong != std::ssize(here))
            throw std::runtime_error(algorithm.name + " broadcast: element " +
                                     std::to_string(wrong) + " is wrong");
    }

  private:
    ArenaBuffer<int> data_;
    std::vector<int> expected_;
};

}  // namespace

const std::vector<BroadcastAlgorithm>& broadcast_algorithms() {
    static const std::vector<BroadcastAlgorithm> algorithms = [] {
        std::vector<BroadcastAlgorithm> all{
            {"linear", "one by one", linear_broadcast, linear_seconds, left_of},
            {"at once", "all at once", all_at_once_broadcast, cut_at_once_seconds, left_of},
            {"tree", "by doubling", tree_broadcast, tree_seconds, other_of_first_pair},
            {"chain", "slices along a chain", chain_broadcast, cut_chain_seconds, left_of},
        };
        std::ranges::move(further_broadcast_algorithms(), std::back_inserter(all));
        return all;
    }();
    return algorithms;
}

LinkRun broadcast_over_link(Peers& peers, const BroadcastAlgorithm& algorithm, std::size_t bytes) {
    Rank& rank = peers.rank();
    const PeersView& view = peers.view();
    Stream stream;
    Payload payload(peers, bytes);
    ArenaBuffer<LinkClock> before = peers.allocate<LinkClock>(1);
    ArenaBuffer<LinkClock> after = peers.allocate<LinkClock>(1);
    rank.barrier();
    const Stopwatch watch;
    launch(stream, {1, 1}, read_link_clock, view, before.data());
    algorithm.run(peers, payload.broadcast_from(0, algorithm.name), stream);
    launch(stream, {1, 1}, read_link_clock, view, after.data());
    peers.synchronize(stream);
    rank.barrier();
    LinkRun run{watch.seconds(), {}};
    payload.require_here(algorithm);
    const LinkClock begin = before.to_host_now()[0], end = after.to_host_now()[0];
    const std::uint64_t start_ns = rank.broadcast(begin.now_ns, 0);
    const std::uint64_t arrived_ns =
        rank.rank() == 0 ? start_ns : end.last_byte_ns + view.link.latency_ns;
    for (const std::uint64_t each : rank.all_gather(arrived_ns))
        run.arrived.push_back(static_cast<double>(each - start_ns) * 1e-9);
    return run;
}

CostModel measure_messages(Peers& peers, std::size_t largest, int rounds) {
    std::vector<MessageTime> times;
    for (std::size_t bytes = 4; bytes <= largest; bytes *= 4)
        times.push_back(ping_pong(peers, bytes, rounds));
    return peers.rank().rank() == 0 ? fit_cost(times) : CostModel{};
}

double broadcast_seconds(Peers& peers, const BroadcastAlgorithm& algorithm, std::size_t bytes,
                         int rounds) {
    constexpr int warm_up = 1;
    const int ranks = peers.rank().world_size();
    peers.rank().barrier();
    Stream stream;
    Payload payload(peers, bytes);
    std::vector<Event> marks(static_cast<std::size_t>(warm_up + rounds + 1));
    peers.rank().barrier();
    int root = 0;
    for (Event& mark : marks) {
        mark.record(stream);
        for (int i = 0; i < ranks && &mark != &marks.back(); i++) {
            algorithm.run(peers, payload.broadcast_from(root, algorithm.name), stream);
            root = algorithm.last_rank(root, ranks);
        }
    }
    peers.synchronize(stream);
    payload.require_here(algorithm);
    std::vector<double> seconds;
    for (std::size_t i = warm_up; i + 1 < marks.size(); i++)
        seconds.push_back(marks[i + 1].seconds_since(marks[i]) / ranks);
    return median(seconds);
}

}  // namespace ddp
