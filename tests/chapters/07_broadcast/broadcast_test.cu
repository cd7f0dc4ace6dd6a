// Broadcasts between ranks that are threads: what arrives, and which error is reported.
#include "07_broadcast/broadcast.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/chapters/07_broadcast/algorithms.hpp"
#include "tests/chapters/support/collective_check.cuh"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Broadcasts `count` elements from `shift` on from `root`, and checks them.
template <class T>
void broadcast(CollectiveCheck<T>& check, Peers& peers, const Algorithm& algorithm,
               std::size_t shift, std::size_t count, int root, Stream& stream) {
    const auto call = [&](T* data) {
        algorithm.broadcast(peers, broadcast_call(data, count, root, "data"), stream);
    };
    check.broadcast(call, {.count = count, .input_shift = shift}, root, stream);
}

// Returns the number of wrong elements after all algorithms, counts, roots and alignments in a row
// on one array, without the host waiting.
template <class T>
int wrong_elements(Peers& peers, const std::vector<std::size_t>& counts, int roots) {
    const int ranks = peers.rank().world_size();
    Stream stream;
    CollectiveCheck<T> check(peers, *std::ranges::max_element(counts));
    for (const Algorithm& algorithm : all_algorithms())
        for (const std::size_t count : counts)
            for (int root = 0; root < std::min(roots, ranks); root++)
                broadcast(check, peers, algorithm, (count + static_cast<std::size_t>(root)) % 4,
                          count, ranks - 1 - root, stream);
    peers.synchronize(stream);
    return check.wrong();
}

void require_arrays_of(int fewest, int most) {
    for (int ranks = fewest; ranks <= most; ranks++) {
        World world(thread_options(ranks));
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) {
            Peers peers(rank, 1 << 20);
            const auto n = static_cast<std::size_t>(ranks);
            const std::vector<std::size_t> counts{0, 1, n - 1, n, n + 1, 127, 997};
            wrong += wrong_elements<unsigned char>(peers, counts, ranks);
            wrong += wrong_elements<int>(peers, counts, ranks);
            wrong += wrong_elements<int>(peers, {65'537}, 2);
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
    }
}

}  // namespace

TEST_CASE(
    "every rank gets the root's array: world sizes 1 to 5, every root, counts that do not divide",
    "[exhaustive]") {
    require_arrays_of(1, 5);
}

TEST_CASE(
    "every rank gets the root's array: world sizes 6 to 9, every root, counts that do not divide",
    "[exhaustive][.long]") {
    require_arrays_of(6, 9);
}

TEST_CASE("large data, in many slices") {
    for (int ranks : {2, 3, 4, 6}) {
        World world(thread_options(ranks));
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) {
            Peers peers(rank, 16 << 20);
            wrong += wrong_elements<int>(peers, {1'000'003}, 1);
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
    }
}

TEST_CASE("over a simulated link the same data arrives", "[as_one]") {
    CommonOptions options = thread_options(5);
    options.link = LinkSpeed{1e9, 1e-5};
    World world(options);
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        Peers peers(rank, 4 << 20);
        wrong += wrong_elements<int>(peers, {0, 1, 997, 300'007}, 2);
    });
    REQUIRE(wrong == 0);
}

TEST_CASE("the typed calls move whole elements, and 100 slices are fine for 3 of them") {
    World world(thread_options(3));
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        Peers peers(rank, 1 << 16);
        Stream stream;
        const double mine = rank.rank();
        for (int algorithm = 0; algorithm < 5; algorithm++) {
            ArenaBuffer<double> data = peers.allocate<double>(4);
            data.copy_from(std::vector<double>{mine, mine, mine, mine});
            if (algorithm == 0)
                linear_broadcast(peers, data.data(), 3, 1, stream);
            else if (algorithm == 1)
                all_at_once_broadcast(peers, data.data(), 3, 1, stream);
            else if (algorithm == 2)
                tree_broadcast(peers, data.data(), 3, 1, stream);
            else if (algorithm == 3)
                chain_broadcast(peers, data.data(), 3, 1, stream);
            else
                chain_broadcast(peers, broadcast_call(data.data(), 3, 1), stream, 100);
            peers.synchronize(stream);
            wrong += data.to_host_now() != std::vector<double>{1, 1, 1, mine};
        }
    });
    REQUIRE(wrong == 0);
}

TEST_CASE("broadcasts on two streams keep the order in which they were enqueued") {
    World world(thread_options(4));
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        std::array<Stream, 2> streams;
        std::array<CollectiveCheck<int>, 2> checks{CollectiveCheck<int>(peers, 10'000),
                                                   CollectiveCheck<int>(peers, 10'000)};
        for (int turn = 0; turn < 40; turn++) {
            const std::size_t which = turn % 3 == 0;
            broadcast(checks[which], peers, all_algorithms()[static_cast<std::size_t>(turn) % 4], 1,
                      9'001, turn % 4, streams[which]);
        }
        for (std::size_t i : {0, 1}) {
            peers.synchronize(streams[i]);
            wrong += checks[i].wrong();
        }
    });
    REQUIRE(wrong == 0);
}

TEST_CASE("two Peers at once do not wait for each other") {
    World world(thread_options(3));
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        Peers first(rank, 1 << 20), second(rank, 1 << 20);
        std::array<Stream, 2> streams;
        std::array<CollectiveCheck<int>, 2> checks{CollectiveCheck<int>(first, 20'000),
                                                   CollectiveCheck<int>(second, 20'000)};
        for (int turn = 0; turn < 20; turn++)
            for (std::size_t i : {0, 1}) {
                const std::size_t which = rank.rank() == 1 ? 1 - i : i;  // in the opposite order
                broadcast(checks[which], which == 0 ? first : second,
                          all_algorithms()[static_cast<std::size_t>(turn) % 4], 0, 19'997, turn % 3,
                          streams[which]);
            }
        first.synchronize(streams[0]);
        second.synchronize(streams[1]);
        wrong += checks[0].wrong() + checks[1].wrong();
    });
    REQUIRE(wrong == 0);
}

TEST_CASE("any rank may begin late") {
    World world(thread_options(4));
    for (int late = 0; late < 4; late++)
        for (const Algorithm& algorithm : all_algorithms()) {
            std::atomic<int> wrong = 0;
            world.run([&](Rank& rank) {
                Peers peers(rank, 1 << 20);
                Stream stream;
                CollectiveCheck<int> check(peers, 1000);
                if (rank.rank() == late)
                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                broadcast(check, peers, algorithm, 0, 1000, 0, stream);
                peers.synchronize(stream);
                wrong += check.wrong();
            });
            CAPTURE(late, algorithm.operation);
            REQUIRE(wrong == 0);
        }
}

namespace {

// Calls act() on all ranks, of which `other` does something else, and returns the cause of the
// failure.
std::string cause_where_one_differs(
    int ranks, int other, const std::function<void(Peers&, int*, Stream&, bool is_other)>& act) {
    World world(thread_options(ranks));
    const auto begin = std::chrono::steady_clock::now();
    const std::string cause = failure_of(world, [&](Rank& rank) {
        Peers peers(rank, 1 << 16);
        Stream stream;
        ArenaBuffer<int> data = peers.allocate<int>(100);
        act(peers, data.data(), stream, rank.rank() == other);
        peers.synchronize(stream);
        rank.barrier();
    });
    REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));  // at once
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {  // the next run starts clean
        Peers peers(rank, 1 << 16);
        wrong += wrong_elements<int>(peers, {100}, 1);
    });
    REQUIRE(wrong == 0);
    return cause;
}

}  // namespace

TEST_CASE("a different count, root, type, name or algorithm is diagnosed at once, on any rank") {
    using Act = std::function<void(Peers&, int*, Stream&)>;
    struct Case {
        Act all, other;
        std::string alls, others;  // as the message quotes them
    };
    const std::vector<Case> cases{
        {[](Peers& p, int* d, Stream& s) { tree_broadcast(p, d, 100, 0, s); },
         [](Peers& p, int* d, Stream& s) { tree_broadcast(p, d, 99, 0, s); },
         "tree broadcast of 100 int from rank 0", "tree broadcast of 99 int from rank 0"},
        {[](Peers& p, int* d, Stream& s) { linear_broadcast(p, d, 100, 0, s); },
         [](Peers& p, int* d, Stream& s) { linear_broadcast(p, d, 100, 1, s); },
         "linear broadcast of 100 int from rank 0", "linear broadcast of 100 int from rank 1"},
        {[](Peers& p, int* d, Stream& s) { chain_broadcast(p, d, 100, 2, s); },
         [](Peers& p, int* d, Stream& s) {
             chain_broadcast(p, reinterpret_cast<float*>(d), 100, 2, s);
         },
         "chain broadcast (1) of 100 int from rank 2",
         "chain broadcast (1) of 100 float from rank 2"},
        {[](Peers& p, int* d, Stream& s) { all_at_once_broadcast(p, d, 100, 0, s, "bias"); },
         [](Peers& p, int* d, Stream& s) { all_at_once_broadcast(p, d, 100, 0, s, "weight"); },
         "all-at-once broadcast of 100 int from rank 0 (\"bias\")",
         "all-at-once broadcast of 100 int from rank 0 (\"weight\")"},
        {[](Peers& p, int* d, Stream& s) { tree_broadcast(p, d, 100, 0, s); },
         [](Peers& p, int* d, Stream& s) { linear_broadcast(p, d, 100, 0, s); },
         "tree broadcast of 100 int from rank 0", "linear broadcast of 100 int from rank 0"},
        {[](Peers& p, int* d, Stream& s) { chain_broadcast(p, broadcast_call(d, 100, 0), s, 3); },
         [](Peers& p, int* d, Stream& s) { chain_broadcast(p, broadcast_call(d, 100, 0), s, 4); },
         "chain broadcast (3) of 100 int from rank 0",
         "chain broadcast (4) of 100 int from rank 0"},
    };
    for (const Case& c : cases)
        for (int other = 0; other < 4; other++) {
            const std::string cause = cause_where_one_differs(
                4, other, [&](Peers& peers, int* data, Stream& stream, bool is_other) {
                    tree_broadcast(peers, data, 10, 3, stream);  // the same on all ranks
                    (is_other ? c.other : c.all)(peers, data, stream);
                });
            CAPTURE(cause, other);
            REQUIRE(has(cause, "operation 2, " + c.alls));
            REQUIRE(has(cause, "operation 2, " + c.others));
            REQUIRE(has(cause, "rank " + std::to_string(other)));
            REQUIRE(has(cause, ": all ranks must do the same, in the same order"));
        }
}

TEST_CASE("two ranks that disagree about the root do not wait for a time-out") {
    const std::string cause =
        cause_where_one_differs(2, 1, [](Peers& peers, int* data, Stream& stream, bool is_other) {
            tree_broadcast(peers, data, 100, is_other ? 1 : 0, stream);
        });
    CAPTURE(cause);
    REQUIRE(has(cause, "tree broadcast of 100 int from rank 0"));
    REQUIRE(has(cause, "tree broadcast of 100 int from rank 1"));
}

TEST_CASE("an absent rank is named, whichever rank waits for it and in every algorithm",
          "[exhaustive]") {
    World world(thread_options(5));
    for (const Algorithm& algorithm : all_algorithms())
        for (int absent = 0; absent < 5; absent++) {
            const std::string cause = failure_of(world, [&](Rank& rank) {
                Peers peers(rank, 1 << 16, 0.8);  // for kernels only, whose messages name the rank
                Stream stream;
                ArenaBuffer<float> data = peers.allocate<float>(1000);
                if (absent % 2 == 1)
                    algorithm.broadcast(peers, broadcast_call(data.data(), 1000, 0), stream);
                peers.synchronize(stream);
                if (rank.rank() != absent)
                    algorithm.broadcast(peers, broadcast_call(data.data(), 1000, 0, "weights"),
                                        stream);
                peers.synchronize(stream);
                while (rank.rank() == absent) {
                    rank.check();
                    std::this_thread::sleep_for(std::chrono::milliseconds(5));
                }
            });
            CAPTURE(cause, absent);
            const std::string number = std::to_string(1 + absent % 2);
            REQUIRE(
                has(cause, ": waited 0.8 s in operation " + number + ", " + algorithm.operation +
                               " of 1000 float from rank 0 (\"weights\"); rank " +
                               std::to_string(absent) + " has " +
                               (absent % 2 == 0 ? "begun no operation"
                                                : "ended operation 1, " + algorithm.operation)));
        }
    std::atomic<int> wrong = 0;
    World patient(thread_options(5));
    patient.run([&](Rank& rank) {
        Peers peers(rank, 1 << 16);
        wrong += wrong_elements<int>(peers, {1000}, 5);
    });
    REQUIRE(wrong == 0);
}

TEST_CASE("calls that make no sense are refused") {
    World world(thread_options(2));
    const auto refusal = [&](const std::function<void(Peers&, Stream&, int*)>& call) {
        return failure_of(world, [&](Rank& rank) {
            Peers peers(rank, 4096);
            Stream stream;
            ArenaBuffer<int> data = peers.allocate<int>(10);
            if (rank.rank() == 0)
                call(peers, stream, data.data());
            rank.barrier();
        });
    };
    for (int root : {-1, 2})
        REQUIRE(has(refusal([&](Peers& p, Stream& s, int* d) { tree_broadcast(p, d, 1, root, s); }),
                    "tree broadcast: there is no rank " + std::to_string(root) +
                        "; the root is one of 0 to 1"));
    REQUIRE(
        has(refusal([](Peers& p, Stream& s, int*) {
                Buffer<int> elsewhere(10);
                linear_broadcast(p, elsewhere.data(), 10, 0, s);
            }),
            "linear broadcast of 10 int from rank 0: the data does not lie in this rank's arena"));
    for (std::size_t count : {std::size_t{1'000'000}, SIZE_MAX / 4 + 2, SIZE_MAX})
        REQUIRE(
            has(refusal([&](Peers& p, Stream& s, int* d) { chain_broadcast(p, d, count, 0, s); }),
                "the data does not lie in this rank's arena"));
    REQUIRE(has(refusal([](Peers& p, Stream& s, int* d) {
                    chain_broadcast(p, broadcast_call(d, 10, 0), s, 0);
                }),
                "chain broadcast: the data cannot be cut into 0 slices; 1 is the least"));
}

}  // namespace ddp::test
