// Over a simulated link every broadcast takes as long as its formula predicts.
#include <algorithm>
#include <cmath>

#include "07_broadcast/show/algorithms.hpp"
#include "common/report/bench.hpp"
#include "tests/chapters/07_broadcast/algorithms.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// all_at_once_broadcast cuts these bytes into four slices.
constexpr std::size_t bytes_sent = 400'000;
constexpr int slices_at_once = 4;

struct Predicted {
    Algorithm algorithm;
    double (*seconds)(const CostModel& link, int ranks);
};

const std::vector<Predicted>& predictions() {
    static const std::vector<Predicted> all{
        {all_algorithms()[0],
         [](const CostModel& link, int ranks) { return linear_seconds(link, ranks, bytes_sent); }},
        {all_algorithms()[1],
         [](const CostModel& link, int ranks) {
             return all_at_once_seconds(link, ranks, bytes_sent, slices_at_once);
         }},
        {all_algorithms()[2],
         [](const CostModel& link, int ranks) { return tree_seconds(link, ranks, bytes_sent); }},
        {all_algorithms()[3], [](const CostModel& link,
                                 int ranks) { return chain_seconds(link, ranks, bytes_sent, 3); }},
        {{"chain broadcast (20)", [](Peers& peers, const Call& call,
                                     Stream& stream) { chain_broadcast(peers, call, stream, 20); }},
         [](const CostModel& link, int ranks) {
             return chain_seconds(link, ranks, bytes_sent, 20);
         }},
    };
    return all;
}

bool is_near(double measured, double predicted) {
    return std::abs(measured / predicted - 1) < 0.25;
}

CommonOptions options_with_link(int ranks, const CostModel& link) {
    CommonOptions options = thread_options(ranks);
    options.link = LinkSpeed{1 / link.beta_s_per_byte, link.alpha_s};
    return options;
}

// Returns the seconds from when all ranks are ready until the last one has the data.
double seconds_of(Rank& rank, Peers& peers, const Algorithm& algorithm, ArenaBuffer<char>& data) {
    Stream stream;
    rank.barrier();
    const Stopwatch watch;
    algorithm.broadcast(peers, broadcast_call(data.data(), data.size(), 1), stream);
    peers.synchronize(stream);
    rank.barrier();
    return watch.seconds();
}

}  // namespace

TEST_CASE("on a simulated link a broadcast takes the predicted time, within 25 %") {
    const CostModel link{0.002, 1 / 10e6};  // 10 MB/s, 2 ms
    for (int ranks : {2, 3, 4, 5, 8}) {
        World world(options_with_link(ranks, link));
        std::vector<double> measured(predictions().size());
        world.run([&](Rank& rank) {
            Peers peers(rank, 1 << 20);
            ArenaBuffer<char> data = peers.allocate<char>(bytes_sent);
            for (std::size_t i = 0; i < measured.size(); i++)
                try_until_good(rank, [&] {
                    const double seconds =
                        seconds_of(rank, peers, predictions()[i].algorithm, data);
                    if (rank.rank() == 0)
                        measured[i] = seconds;
                    return is_near(seconds, predictions()[i].seconds(link, ranks));
                });
        });
        for (std::size_t i = 0; i < measured.size(); i++) {
            const double predicted = predictions()[i].seconds(link, ranks);
            CAPTURE(ranks, predictions()[i].algorithm.operation, measured[i], predicted);
            REQUIRE(is_near(measured[i], predicted));
        }
    }
}

TEST_CASE("broadcasts in a row do not overlap where each of them is measured") {
    const CostModel link{0.001, 1 / 40e6};
    for (int ranks : {2, 3, 4}) {
        World world(options_with_link(ranks, link));
        std::vector<double> measured(broadcast_algorithms().size());
        world.run([&](Rank& rank) {
            Peers peers(rank, 1 << 20);
            for (std::size_t i = 0; i < measured.size(); i++)
                try_until_good(rank, [&] {
                    const BroadcastAlgorithm& algorithm = broadcast_algorithms()[i];
                    const double seconds = broadcast_seconds(peers, algorithm, bytes_sent, 2);
                    if (rank.rank() == 0)
                        measured[i] = seconds;
                    return is_near(seconds, algorithm.predicted_seconds(link, ranks, bytes_sent));
                });
        });
        for (std::size_t i = 0; i < measured.size(); i++) {
            const BroadcastAlgorithm& algorithm = broadcast_algorithms()[i];
            const double predicted = algorithm.predicted_seconds(link, ranks, bytes_sent);
            CAPTURE(ranks, algorithm.name, measured[i], predicted);
            REQUIRE(is_near(measured[i], predicted));
        }
    }
}

TEST_CASE("the link's clock says when each rank had the data") {
    // For 10 MB/s and 2 ms. All at once, the order in which the slices arrive is not fixed.
    const std::vector<std::vector<double>> expected{
        {0.042, 0.084, 0.126}, {0.12, 0.12, 0.12}, {0.084, 0.042, 0.084}, {0.048, 0.06, 0.072}};
    World world(options_with_link(4, {0.002, 1 / 10e6}));
    std::vector<LinkRun> runs(expected.size());
    const auto is_right = [&](const LinkRun& run, std::size_t algorithm) {
        for (std::size_t r = 1; r < 4; r++)
            if (!is_near(run.arrived[r], expected[algorithm][r - 1]))
                return false;
        return true;
    };
    world.run([&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        for (std::size_t i = 0; i < runs.size(); i++)
            try_until_good(rank, [&] {
                const LinkRun run =
                    broadcast_over_link(peers, broadcast_algorithms()[i], bytes_sent);
                if (rank.rank() == 0)
                    runs[i] = run;
                return is_right(run, i);
            });
    });
    for (std::size_t i = 0; i < runs.size(); i++) {
        CAPTURE(broadcast_algorithms()[i].name, runs[i].arrived[1], runs[i].arrived[2],
                runs[i].arrived[3]);
        REQUIRE(runs[i].arrived.size() == 4);
        REQUIRE(runs[i].arrived[0] == 0);
        REQUIRE(is_right(runs[i], i));
        REQUIRE(runs[i].seconds >= *std::ranges::max_element(runs[i].arrived));
    }
}

TEST_CASE("the cost of a message is measured over the link") {
    const CostModel link{0.005, 1 / 5e6};
    World world(options_with_link(3, link));
    CostModel measured;
    world.run([&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        try_until_good(rank, [&] {
            const CostModel message = measure_messages(peers, 1 << 18, 3);
            if (rank.rank() == 0)
                measured = message;
            return is_near(message.alpha_s, link.alpha_s) &&
                   is_near(message.beta_s_per_byte, link.beta_s_per_byte);
        });
    });
    CAPTURE(measured.alpha_s, measured.beta_s_per_byte);
    REQUIRE(is_near(measured.alpha_s, link.alpha_s));
    REQUIRE(is_near(measured.beta_s_per_byte, link.beta_s_per_byte));
}

}  // namespace ddp::test
