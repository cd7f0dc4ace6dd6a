// Reduce across ranks that are threads: sums that show a missing rank, bits that depend on the
// number of ranks only, and which error is reported.
#include "08_reduce/tree_reduce.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <span>
#include <thread>

#include "05_ranks/world.hpp"
#include "tests/chapters/support/collective_check.cuh"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Reduces `count` elements from `shift` on to the root, and checks them.
template <class T>
void reduce(CollectiveCheck<T>& check, Peers& peers, ReduceOp op, std::size_t shift,
            std::size_t count, int root, bool in_place, Stream& stream) {
    const auto call = [&](const T* input, T* output) {
        tree_reduce(peers, input, output, count, op, root, stream, "data");
    };
    check.reduce(call, {count, op, in_place, shift, shift}, root, stream);
}

// Returns the number of wrong elements after all `ops`, counts, roots and alignments in a row on
// the same arrays, without the host waiting.
template <class T>
int wrong_reductions(Peers& peers, const std::vector<std::size_t>& counts, int roots,
                     std::span<const ReduceOp> ops = all_ops) {
    const int ranks = peers.rank().world_size();
    Stream stream;
    CollectiveCheck<T> check(peers, *std::ranges::max_element(counts));
    for (const ReduceOp op : ops)
        for (const std::size_t count : counts)
            for (int root = 0; root < std::min(roots, ranks); root++)
                reduce(check, peers, op, (count + static_cast<std::size_t>(root)) % 4, count, root,
                       root % 2 == 1, stream);
    peers.synchronize(stream);
    return check.wrong();
}

// Adds in the order of tree_reduce: the largest power of two of the ranks, and the rest.
template <class T>
T sum_in_tree_order(std::span<const T> values) {
    if (values.size() == 1)
        return values[0];
    const std::size_t half = std::bit_ceil(values.size()) / 2;
    using Arithmetic = typename ArithmeticOf<T>::type;  // a kernel's combine() is none for the host
    return static_cast<T>(static_cast<Arithmetic>(sum_in_tree_order(values.first(half))) +
                          static_cast<Arithmetic>(sum_in_tree_order(values.subspan(half))));
}

// Returns values of very different sizes, whose sums are rounded.
template <class T>
T rough_value(int rank, std::size_t i) {
    const double x = std::sin(static_cast<double>(rank * 1009 + static_cast<int>(i) * 31 + 1));
    return static_cast<T>(static_cast<float>(x * std::exp2(static_cast<double>((i + 3) % 11))));
}

template <class T>
bool has_bits(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Returns how many sums have other bits than those of the documented order, for any root.
template <class T>
int sums_with_other_bits(World& world, std::size_t count) {
    const int ranks = world.world_size();
    std::vector<T> expected;
    for (std::size_t i = 0; i < count; i++) {
        std::vector<T> values;
        for (int r = 0; r < ranks; r++)
            values.push_back(rough_value<T>(r, i));
        expected.push_back(sum_in_tree_order<T>(values));
    }
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        Peers peers(rank, 4 << 20);
        Stream stream;
        ArenaBuffer<T> input = peers.allocate<T>(count), output = peers.allocate<T>(count);
        std::vector<T> host;
        for (std::size_t i = 0; i < count; i++)
            host.push_back(rough_value<T>(rank.rank(), i));
        input.copy_from(host);
        for (int root = 0; root < ranks; root++)
            tree_reduce(peers, static_cast<const T*>(input.data()), output.data(), count,
                        ReduceOp::sum, root, stream);
        peers.synchronize(stream);
        const std::vector<T> sums = output.to_host_now();
        for (std::size_t i = 0; i < count; i++)
            wrong += !has_bits(sums[i], expected[i]);
    });
    return wrong;
}

void require_reductions_of(int fewest, int most) {
    for (int ranks = fewest; ranks <= most; ranks++) {
        World world(thread_options(ranks));
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) {
            Peers peers(rank, 4 << 20);
            const auto n = static_cast<std::size_t>(ranks);
            const std::vector<std::size_t> counts{0, 1, n - 1, n, n + 1, 127, 997};
            wrong += wrong_reductions<float>(peers, counts, ranks);
            wrong += wrong_reductions<int>(peers, counts, ranks);
            wrong += wrong_reductions<double>(peers, {1, 997}, 1);
            wrong += wrong_reductions<__half>(peers, {1, 997}, 1);
            wrong += wrong_reductions<__nv_bfloat16>(peers, {1, 997}, 2);
            wrong += wrong_reductions<float>(peers, {65'537}, 1);
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
    }
}

}  // namespace

TEST_CASE("every rank counts once: world sizes 1 to 5, every root, every type and operation",
          "[exhaustive]") {
    require_reductions_of(1, 5);
}

TEST_CASE("every rank counts once: world sizes 6 to 9, every root, every type and operation",
          "[exhaustive][.long]") {
    require_reductions_of(6, 9);
}

TEST_CASE("large data goes through a small staging area") {
    constexpr ReduceOp ops[] = {ReduceOp::sum, ReduceOp::average};
    for (int ranks : {2, 3, 4, 6}) {
        World world(thread_options(ranks));
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) {
            Peers peers(rank, 24 << 20);
            wrong += wrong_reductions<int>(peers, {500'009}, 1, ops);
            wrong += wrong_reductions<double>(peers, {100'003}, 2, ops);
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
    }
}

TEST_CASE("over a simulated link the result is the same", "[as_one]") {
    CommonOptions options = thread_options(5);
    options.link = LinkSpeed{1e9, 1e-5};
    World world(options);
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        Peers peers(rank, 8 << 20);
        wrong += wrong_reductions<float>(peers, {0, 1, 997, 100'003}, 2);
    });
    REQUIRE(wrong == 0);
}

TEST_CASE("the bits of a sum are those of the documented order, for every root and size") {
    for (int ranks = 1; ranks <= 9; ranks++) {
        World world(thread_options(ranks));
        CAPTURE(ranks);
        REQUIRE(sums_with_other_bits<float>(world, 307) == 0);
        REQUIRE(sums_with_other_bits<double>(world, 307) == 0);
        REQUIRE(sums_with_other_bits<__half>(world, 307) == 0);
        REQUIRE(sums_with_other_bits<__nv_bfloat16>(world, 307) == 0);
    }
    World world(thread_options(7));
    REQUIRE(sums_with_other_bits<float>(world, 40'009) == 0);  // more than a slice
    // With these values another order does give other bits.
    bool differs = false;
    for (std::size_t i = 0; i < 100; i++) {
        float in_a_row = 0;
        std::vector<float> all;
        for (int r = 0; r < 4; r++) {
            all.push_back(rough_value<float>(r, i));
            in_a_row += all.back();
        }
        differs = differs || !has_bits(in_a_row, sum_in_tree_order<float>(all));
    }
    REQUIRE(differs);
}

TEST_CASE("the order is written as the additions are made") {
    REQUIRE(tree_order(1) == "x0");
    REQUIRE(tree_order(2) == "x0+x1");
    REQUIRE(tree_order(3) == "(x0+x1)+x2");
    REQUIRE(tree_order(7) == "((x0+x1)+(x2+x3))+((x4+x5)+x6)");
}

TEST_CASE("NaN on one rank is NaN at the root; an int average loses its fraction") {
    World world(thread_options(3));
    std::vector<float> extremes;
    std::vector<int> averages;
    world.run([&](Rank& rank) {
        Peers peers(rank, 1 << 16);
        Stream stream;
        ArenaBuffer<float> values = peers.allocate<float>(3), result = peers.allocate<float>(6);
        std::vector<float> host{1, 2, 3};
        host[static_cast<std::size_t>(rank.rank())] = NAN;
        values.copy_from(host);
        ArenaBuffer<int> ints = peers.allocate<int>(2);
        ints.copy_from(rank.rank() == 2 ? std::vector<int>{3, -3} : std::vector<int>{1, -1});
        tree_reduce(peers, static_cast<const float*>(values.data()), result.data(), 3,
                    ReduceOp::maximum, 0, stream);
        tree_reduce(peers, static_cast<const float*>(values.data()), result.data() + 3, 3,
                    ReduceOp::minimum, 0, stream);
        tree_reduce(peers, static_cast<const int*>(ints.data()), ints.data(), 2, ReduceOp::average,
                    0, stream);
        peers.synchronize(stream);
        if (rank.rank() == 0) {
            extremes = result.to_host_now();
            averages = ints.to_host_now();
        }
    });
    for (const float value : extremes)
        REQUIRE(std::isnan(value));
    REQUIRE(averages == std::vector<int>{1, -1});  // 5 / 3, -5 / 3
}

TEST_CASE("reductions on two streams and with two Peers do not disturb each other") {
    World world(thread_options(4));
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        Peers first(rank, 4 << 20), second(rank, 4 << 20);
        std::array<Stream, 3> streams;
        std::array<CollectiveCheck<float>, 3> checks{CollectiveCheck<float>(first, 60'000),
                                                     CollectiveCheck<float>(first, 60'000),
                                                     CollectiveCheck<float>(second, 60'000)};
        for (int turn = 0; turn < 30; turn++) {
            const std::size_t mine = turn % 4 == 0;
            reduce(checks[mine], first, all_ops[turn % 4], 1, 50'021, turn % 4, turn % 3 == 0,
                   streams[mine]);
            reduce(checks[2], second, all_ops[turn % 3], 0, 60'000, turn % 3, false, streams[2]);
        }
        for (std::size_t i = 0; i < 3; i++) {
            (i == 2 ? second : first).synchronize(streams[i]);
            wrong += checks[i].wrong();
        }
    });
    REQUIRE(wrong == 0);
}

TEST_CASE("any rank may begin a reduction late") {
    World world(thread_options(5));
    for (int late = 0; late < 5; late++) {
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) {
            Peers peers(rank, 4 << 20);
            Stream stream;
            CollectiveCheck<int> check(peers, 100'000);
            if (rank.rank() == late)
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
            reduce(check, peers, ReduceOp::sum, 0, 100'000, 0, false, stream);
            reduce(check, peers, ReduceOp::sum, 0, 100'000, 2, false, stream);
            peers.synchronize(stream);
            wrong += check.wrong();
        });
        CAPTURE(late);
        REQUIRE(wrong == 0);
    }
}

TEST_CASE("a different operation, count, type, root or name of a reduction is diagnosed at once") {
    using Act = std::function<void(Peers&, float*, Stream&)>;
    struct Case {
        Act other;
        std::string others;  // as the message quotes it
    };
    const auto reduce = [](Peers& p, float* d, std::size_t count, ReduceOp op, int root, Stream& s,
                           const std::string& name) {
        tree_reduce(p, static_cast<const float*>(d), d, count, op, root, s, name);
    };
    const std::vector<Case> cases{
        {[&](Peers& p, float* d, Stream& s) { reduce(p, d, 99, ReduceOp::sum, 0, s, "g"); },
         "tree reduce sum of 99 float to rank 0 (\"g\")"},
        {[&](Peers& p, float* d, Stream& s) { reduce(p, d, 100, ReduceOp::maximum, 0, s, "g"); },
         "tree reduce maximum of 100 float to rank 0 (\"g\")"},
        {[&](Peers& p, float* d, Stream& s) { reduce(p, d, 100, ReduceOp::sum, 3, s, "g"); },
         "tree reduce sum of 100 float to rank 3 (\"g\")"},
        {[&](Peers& p, float* d, Stream& s) { reduce(p, d, 100, ReduceOp::sum, 0, s, "h"); },
         "tree reduce sum of 100 float to rank 0 (\"h\")"},
        {[&](Peers& p, float* d, Stream& s) {
             auto* ints = reinterpret_cast<int*>(d);
             tree_reduce(p, static_cast<const int*>(ints), ints, 100, ReduceOp::sum, 0, s, "g");
         },
         "tree reduce sum of 100 int to rank 0 (\"g\")"},
    };
    World world(thread_options(4));
    for (const Case& c : cases)
        for (int other = 0; other < 4; other++) {
            const auto begin = std::chrono::steady_clock::now();
            const std::string cause = failure_of(world, [&](Rank& rank) {
                Peers peers(rank, 1 << 16);
                Stream stream;
                ArenaBuffer<float> data = peers.allocate<float>(100);
                reduce(peers, data.data(), 7, ReduceOp::sum, 1, stream,
                       "");  // the same on all ranks
                if (rank.rank() == other)
                    c.other(peers, data.data(), stream);
                else
                    reduce(peers, data.data(), 100, ReduceOp::sum, 0, stream, "g");
                peers.synchronize(stream);
                rank.barrier();
            });
            CAPTURE(cause, other);
            REQUIRE(has(cause, "operation 2, tree reduce sum of 100 float to rank 0 (\"g\")"));
            REQUIRE(has(cause, "operation 2, " + c.others));
            REQUIRE(has(cause, ": all ranks must do the same, in the same order"));
            REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
        }
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {  // the next run starts clean
        Peers peers(rank, 1 << 20);
        wrong += wrong_reductions<float>(peers, {100}, 4);
    });
    REQUIRE(wrong == 0);
}

TEST_CASE("a rank that is absent from a reduction is named") {
    World world(thread_options(5, 0.2));
    for (int absent = 0; absent < 5; absent++) {
        const std::string cause = failure_of(world, [&](Rank& rank) {
            Peers peers(rank, 1 << 16);
            Stream stream;
            ArenaBuffer<float> data = peers.allocate<float>(1000);
            if (rank.rank() != absent)
                tree_reduce(peers, static_cast<const float*>(data.data()), data.data(), 1000,
                            ReduceOp::average, 1, stream, "gradients");
            peers.synchronize(stream);
            while (rank.rank() == absent) {
                rank.check();
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
        });
        CAPTURE(cause, absent);
        REQUIRE(has(cause,
                    ": waited 0.2 s in operation 1, tree reduce average of 1000 float to rank 1 "
                    "(\"gradients\"); rank " +
                        std::to_string(absent) + " has begun no operation"));
    }
}

TEST_CASE("reductions that make no sense are refused") {
    World world(thread_options(2));
    const auto refusal = [&](std::size_t count, int root, bool elsewhere) {
        return failure_of(world, [&](Rank& rank) {
            Peers peers(rank, 4096);
            Stream stream;
            ArenaBuffer<double> data = peers.allocate<double>(10);
            Buffer<double> outside(elsewhere ? 10 : 0);
            if (rank.rank() == 0)
                tree_reduce(peers, static_cast<const double*>(data.data()),
                            elsewhere ? outside.data() : data.data(), count, ReduceOp::sum, root,
                            stream);
            rank.barrier();
        });
    };
    REQUIRE(has(refusal(10, 2, false),
                "tree reduce sum: there is no rank 2; the root is one of 0 to 1"));
    REQUIRE(has(refusal(10, -1, false), "there is no rank -1"));
    REQUIRE(
        has(refusal(10, 0, true),
            "tree reduce sum of 10 double to rank 0: the data does not lie in this rank's arena"));
    for (std::size_t count : {std::size_t{1'000'000}, SIZE_MAX / 8 + 2, SIZE_MAX})
        REQUIRE(has(refusal(count, 0, false), "the data does not lie in this rank's arena"));
}

}  // namespace ddp::test
