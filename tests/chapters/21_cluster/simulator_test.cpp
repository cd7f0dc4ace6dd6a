// The simulated all-reduces: by hand, in their limits, byte by byte, and against measurements.
#include <bit>
#include <ctime>
#include <numeric>

#include "09_all_reduce/cost.hpp"
#include "21_cluster/measured/comparison.hpp"
#include "21_cluster/simulated_all_reduce.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using namespace simulator;

constexpr Algorithm all_algorithms[] = {Algorithm::flat, Algorithm::two_level, Algorithm::tree};
constexpr double free_bandwidth = 1e18;

// Nodes whose ranks pass `bytes` within the node for nothing; a port takes 1 s for 1000 bytes.
Cluster slow_ports(int nodes, int ranks_per_node, int ports = 1) {
    return {nodes, ranks_per_node, straight_link(0, free_bandwidth), straight_link(0, 1000), ports};
}

// Returns what the messages of a schedule bring out of each node.
std::vector<double> bytes_from_nodes(Algorithm algorithm, const Cluster& cluster, double bytes) {
    std::vector<double> result(static_cast<std::size_t>(cluster.nodes));
    const Schedule messages = schedule(algorithm, cluster, bytes);
    for (const Rounds& rounds : messages.parts)
        for (const Round& round : rounds)
            for (int rank = 0; rank < cluster.ranks(); rank++)
                if (const int partner = round.partner(rank); partner >= 0) {
                    const int node = rank / cluster.ranks_per_node;
                    const int other = partner / cluster.ranks_per_node;
                    const auto from = static_cast<std::size_t>(round.reversed ? other : node);
                    if (node != other)
                        result[from] += messages.slices * messages.copies * round.bytes;
                }
    return result;
}

double sum(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

TEST_CASE("simulator: a ring by hand") {
    const auto seconds = [](int ranks, double bytes) {
        const Cluster cluster{ranks, 1, straight_link(0, 1), straight_link(1, 10)};
        return all_reduce_s(Algorithm::flat, cluster, bytes);
    };
    REQUIRE(seconds(1, 100) == 0);
    REQUIRE(seconds(2, 100) == Approx(2 * (1 + 50 / 10.0)));
    REQUIRE(seconds(3, 100) == Approx(4 * (1 + 100 / 3.0 / 10)));
    REQUIRE(seconds(4, 7) == Approx(6 * (1 + 7 / 4.0 / 10)));
}

TEST_CASE("simulator: one slow edge of a ring hides the latency of the others") {
    // Two nodes of two ranks: ranks 1 and 3 send over the slow port, 1 s a chunk and 5 s later; the
    // other edges take 2 s and nothing. A chunk needs 1 + 5 + 2 = 8 s for two edges, six rounds are
    // three such pairs.
    const Cluster cluster{2, 2, straight_link(0, 5), straight_link(5, 10)};
    REQUIRE(all_reduce_s(Algorithm::flat, cluster, 40) == Approx(3 * 8));
}

TEST_CASE("simulator: equal links give the formulas of the all-reduce chapter") {
    const CostModel message{3e-5, 1 / 2e8};
    const Link link = straight_link(message.alpha_s, 2e8);
    for (const int ranks : {2, 3, 5, 7, 8})
        for (const std::size_t bytes : {std::size_t{4}, std::size_t{1000003}}) {
            CAPTURE(ranks, bytes);
            const auto size = static_cast<double>(bytes);
            for (const Cluster& cluster :
                 {Cluster{ranks, 1, link, link}, Cluster{1, ranks, link, link}}) {
                REQUIRE(all_reduce_s(Algorithm::flat, cluster, size) ==
                        Approx(ring_seconds(message, ranks, bytes)));
            }
        }
}

TEST_CASE("simulator: without latency, the busiest port decides") {
    for (const int nodes : {2, 3, 4, 5, 8, 13})
        for (const int local : {1, 2, 3, 4}) {
            CAPTURE(nodes, local);
            const double bytes = 64e6, ranks = nodes * local, whole_s = bytes / 1000;
            const auto share = [&](Algorithm algorithm, int ports) {
                return all_reduce_s(algorithm, slow_ports(nodes, local, ports), bytes) / whole_s;
            };
            REQUIRE(share(Algorithm::flat, 1) == Approx(2 * (ranks - 1) / ranks));
            REQUIRE(share(Algorithm::two_level, 1) == Approx(2.0 * (nodes - 1) / nodes));
            // With a port for each rank the same bytes leave a node through as many ports.
            REQUIRE(share(Algorithm::flat, local) == Approx(2 * (ranks - 1) / ranks / local));
            REQUIRE(share(Algorithm::two_level, local) ==
                    Approx(2.0 * (nodes - 1) / nodes / local));
        }
}

TEST_CASE("simulator: the rings of all ports share the links within a node") {
    for (const int ports : {1, 2, 4}) {
        CAPTURE(ports);
        const Cluster cluster{3, 4, straight_link(0, 10), straight_link(0, free_bandwidth), ports};
        REQUIRE(all_reduce_s(Algorithm::flat, cluster, 120) == Approx(2 * 11 * 120 / 12 / 10.0));
    }
}

TEST_CASE("simulator: with endless bandwidth, the longest chain of messages decides") {
    const double in = 1e-6, out = 1e-3;
    for (const int nodes : {2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33})
        for (const int local : {1, 4}) {
            CAPTURE(nodes, local);
            const Cluster cluster{nodes, local, straight_link(in, free_bandwidth),
                                  straight_link(out, free_bandwidth)};
            const auto seconds = [&](Algorithm algorithm) {
                return all_reduce_s(algorithm, cluster, 64e6);
            };
            const int depth = std::bit_width(static_cast<unsigned>(nodes - 1));
            const double inside = local > 1 ? 2 * in : 0;
            REQUIRE(seconds(Algorithm::two_level) == Approx(2 * (nodes - 1) * out + inside));
            REQUIRE(seconds(Algorithm::tree) == Approx(2 * depth * out + 2 * (local - 1) * in));
        }
}

TEST_CASE("simulator: two trees use every port both ways") {
    for (const int nodes : {2, 3, 4, 5, 8, 9, 16, 64}) {
        CAPTURE(nodes);
        const double seconds = all_reduce_s(Algorithm::tree, slow_ports(nodes, 1), 64e6);
        // 2 K pass the port of an inner node in either direction; nobody's port passes less than
        // the mean of 2 (H - 1) / H. One tree alone would take 3 K: two children and a parent.
        REQUIRE(seconds >= 0.999 * 2 * (nodes - 1) / nodes * 64e3);
        REQUIRE(seconds <= 1.15 * 2 * 64e3);
    }
    REQUIRE(all_reduce_s(Algorithm::tree, slow_ports(2, 1), 64e6) == Approx(64e3));
}

TEST_CASE("simulator: what leaves the nodes") {
    for (const int nodes : {1, 2, 3, 4})
        for (const int local : {1, 2, 3}) {
            CAPTURE(nodes, local);
            const Cluster cluster = slow_ports(nodes, local, 2);
            const double bytes = 1e6 + 1, ranks = nodes * local;
            const auto from_nodes = [&](Algorithm algorithm) {
                return bytes_from_nodes(algorithm, cluster, bytes);
            };
            if (nodes == 1) {
                for (const Algorithm algorithm : all_algorithms)
                    REQUIRE(sum(from_nodes(algorithm)) == 0);
                continue;
            }
            for (const auto& [algorithm, of_each] :
                 {std::pair{Algorithm::flat, 2 * (ranks - 1) / ranks},
                  std::pair{Algorithm::two_level, 2.0 * (nodes - 1) / nodes}})
                for (const double node : from_nodes(algorithm))
                    REQUIRE(node == Approx(of_each * bytes));
            REQUIRE(sum(from_nodes(Algorithm::tree)) == Approx(2 * (nodes - 1) * bytes));
        }
}

TEST_CASE("simulator: after its rounds, every rank has heard of every rank") {
    for (const int nodes : {1, 2, 3, 6})
        for (const int local : {1, 3})
            for (const Algorithm algorithm : all_algorithms) {
                const Cluster cluster = slow_ports(nodes, local);
                CAPTURE(nodes, local, static_cast<int>(algorithm));
                for (const Rounds& rounds : schedule(algorithm, cluster, 1e6).parts) {
                    std::vector<unsigned> has;
                    for (int rank = 0; rank < cluster.ranks(); rank++)
                        has.push_back(1u << rank);
                    std::vector<unsigned> ready = has;
                    for (const Round& round : rounds) {
                        if (round.waits)
                            ready = has;
                        for (int rank = 0; rank < cluster.ranks(); rank++)
                            if (const int partner = round.partner(rank); partner >= 0) {
                                const auto from =
                                    static_cast<std::size_t>(round.reversed ? partner : rank);
                                const auto to =
                                    static_cast<std::size_t>(round.reversed ? rank : partner);
                                REQUIRE(from != to);
                                has[to] |= ready[from];
                            }
                    }
                    for (const unsigned all : has)
                        REQUIRE(all == (1u << cluster.ranks()) - 1);
                }
            }
}

TEST_CASE("simulator: an uplink slows down a ring once it is narrower than one node's port") {
    Cluster cluster = slow_ports(8, 2, 1);
    for (const Algorithm algorithm : {Algorithm::flat, Algorithm::two_level}) {
        cluster.nodes_per_leaf = 0;
        const double free_s = all_reduce_s(algorithm, cluster, 64e6);
        cluster.nodes_per_leaf = 4;
        cluster.oversubscription = 4;  // the uplink is as fast as one port
        REQUIRE(all_reduce_s(algorithm, cluster, 64e6) < 1.3 * free_s);
        cluster.oversubscription = 16;
        REQUIRE(all_reduce_s(algorithm, cluster, 64e6) > 3.5 * free_s);
    }
}

TEST_CASE("simulator: 4,096 ranks take less than 2 s of a processor") {
    const Cluster cluster{512, 8, straight_link(2e-6, 370e9), straight_link(14e-6, 48e9), 8};
    const std::clock_t begin = std::clock();
    for (const Algorithm algorithm : {Algorithm::flat, Algorithm::two_level, Algorithm::tree})
        REQUIRE(all_reduce_s(algorithm, cluster, 25 << 20) > 0);
    REQUIRE(std::clock() - begin < 2 * CLOCKS_PER_SEC);
}

TEST_CASE("simulator: within the errors that it is held to, where it was measured") {
    const std::vector<Comparison> comparisons = all_comparisons();
    const auto errors = [&](const std::string& kind, const std::string& where) {
        std::vector<double> result;
        for (const Comparison& row : comparisons)
            if (row.kind == kind && row.what.find(where) != std::string::npos)
                result.push_back(std::abs(row.error()));
        return result;
    };
    const auto mean = [](const std::vector<double>& values) {
        return sum(values) / static_cast<double>(values.size());
    };
    const auto at_100 = errors(large_all_reduce, "100 Mbit/s");
    REQUIRE(at_100.size() == 18);
    REQUIRE(std::ranges::max(at_100) < 0.1);
    REQUIRE(mean(errors(large_all_reduce, "")) < 0.03);
    REQUIRE(std::ranges::max(errors(own_all_reduce, "")) < 0.2);
    const auto steps = errors(plain_step, "100 Mbit/s");
    REQUIRE(steps.size() == 18);
    REQUIRE(mean(steps) < 0.05);
    REQUIRE(std::ranges::max(steps) < 0.15);
    REQUIRE(std::ranges::max(errors(jittery_step, "")) < 0.05);
}

}  // namespace ddp::test
