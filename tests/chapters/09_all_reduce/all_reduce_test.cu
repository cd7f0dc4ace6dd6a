// All-reduces between ranks that are threads: every element of every result, and operations that
// must not disturb each other.
#include <array>
#include <atomic>

#include "07_broadcast/broadcast.hpp"
#include "09_all_reduce/support/algorithms.hpp"
#include "tests/chapters/support/collective_check.cuh"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Which of all_reduces[] they are.
bool is_on_host(std::size_t algorithm) {
    return all_reduces[algorithm].run == nullptr;
}
bool is_for_short_arrays(std::size_t algorithm) {
    return all_reduces[algorithm].max_bytes == Collectives::max_staged;
}

// Returns the number of wrong elements after all algorithms and counts in a row on the same arrays,
// without the host waiting.
template <class T>
int wrong_in_all_algorithms(Peers& peers, const std::vector<std::size_t>& counts,
                            std::uint32_t seed) {
    const std::size_t most = *std::ranges::max_element(counts);
    CollectiveCheck<T> check(peers, most);
    const std::vector<AllReduceAlgorithm<T>> algorithms = all_reduce_algorithms<T>(peers, most);
    Stream stream;
    peers.rank().barrier();  // all ranks have allocated their memory
    Dice dice(seed);
    for (const AllReduceAlgorithm<T>& algorithm : algorithms)
        for (const std::size_t count : counts)
            if (count <= algorithm.most)
                check.all_reduce(algorithm.run, dice.turn(count), stream);
    peers.synchronize(stream);
    return check.wrong();
}

int wrong_in_all_types(Peers& peers, const std::vector<std::size_t>& counts, std::uint32_t seed) {
    return wrong_in_all_algorithms<float>(peers, counts, seed) +
           wrong_in_all_algorithms<double>(peers, counts, seed + 1) +
           wrong_in_all_algorithms<int>(peers, counts, seed + 2) +
           wrong_in_all_algorithms<__half>(peers, counts, seed + 3) +
           wrong_in_all_algorithms<__nv_bfloat16>(peers, counts, seed + 4);
}

void require_sums_of(int fewest, int most) {
    for (int ranks = fewest; ranks <= most; ranks++) {
        World world(thread_options(ranks));
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) {
            Peers peers(rank, 4 << 20);
            const auto n = static_cast<std::size_t>(ranks);
            wrong += wrong_in_all_types(peers, {0, 1, n - 1, n, n + 1, 32 * n, 127, 997, 8191},
                                        static_cast<std::uint32_t>(17 * ranks));
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
    }
}

}  // namespace

TEST_CASE("every rank gets the sum: world sizes 1 to 5, all types, counts that do not divide",
          "[exhaustive]") {
    require_sums_of(1, 5);
}

TEST_CASE("every rank gets the sum: world sizes 8 and 9, all types, counts that do not divide",
          "[exhaustive][.long]") {
    require_sums_of(8, 9);
}

TEST_CASE("large data", "[as_one]") {
    for (int ranks : {2, 3, 4}) {
        World world(thread_options(ranks));
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) {
            Peers peers(rank, 16 << 20);
            wrong += wrong_in_all_algorithms<float>(peers, {1'000'003}, 1);
            wrong += wrong_in_all_algorithms<__half>(peers, {300'007}, 2);
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
    }
}

namespace {

// Returns the number of wrong elements of every operation in place and out of place, aligned and
// not.
template <class T>
int wrong_in_every_turn(Peers& peers) {
    constexpr std::size_t count = 1009;
    CollectiveCheck<T> check(peers, count);
    const std::vector<AllReduceAlgorithm<T>> algorithms = all_reduce_algorithms<T>(peers, count);
    Stream stream;
    peers.rank().barrier();
    for (const AllReduceAlgorithm<T>& algorithm : algorithms)
        for (const ReduceOp op : all_ops)
            for (const bool in_place : {false, true})
                for (const std::size_t shift : {0, 1, 4})
                    check.all_reduce(algorithm.run, {count, op, in_place, shift, 4 - shift},
                                     stream);
    peers.synchronize(stream);
    return check.wrong();
}

}  // namespace

TEST_CASE("every algorithm, operation and type, in place and out of place, aligned and not",
          "[exhaustive]") {
    for (int ranks : {2, 3, 4}) {
        World world(thread_options(ranks));
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) {
            Peers peers(rank, 1 << 20);
            wrong += wrong_in_every_turn<float>(peers) + wrong_in_every_turn<double>(peers) +
                     wrong_in_every_turn<int>(peers) + wrong_in_every_turn<__half>(peers) +
                     wrong_in_every_turn<__nv_bfloat16>(peers);
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
    }
}

TEST_CASE("ranks whose data is aligned differently") {
    World world(thread_options(4));
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        Stream stream;
        ArenaBuffer<float> input = peers.allocate<float>(10'010),
                           output = peers.allocate<float>(10'010);
        const std::vector<AllReduceAlgorithm<float>> algorithms =
            all_reduce_algorithms<float>(peers, 10'000);
        const auto shift = static_cast<std::size_t>(rank.rank());
        for (const AllReduceAlgorithm<float>& algorithm : algorithms) {
            input.copy_from(std::vector<float>(10'010, static_cast<float>(1 << rank.rank())));
            output.copy_from(std::vector<float>(10'010, -1));
            rank.barrier();
            algorithm.run(input.data() + shift, output.data() + 3 - shift, 10'000, ReduceOp::sum,
                          stream, "");
            peers.synchronize(stream);
            const std::vector<float> host = output.to_host_now();
            for (std::size_t i = 0; i < host.size(); i++)
                wrong += host[i] != (i >= 3 - shift && i < 10'003 - shift ? 15 : -1);
        }
    });
    REQUIRE(wrong == 0);
}

namespace {

// Broadcasts and messages between neighbours, to be made between all-reduces.
class Others {
  public:
    Others(Peers& peers, Stream& sending)
        : peers_(peers), sending_(sending), data_(peers.allocate<int>(3 * size)) {
        data_.copy_from(std::vector<int>(3 * size, peers.rank().rank()));
    }
    void broadcast(Stream& stream) {
        tree_broadcast(peers_, data_.data(), size, 0, stream, "others");
    }
    void pass_on(Stream& stream) {
        const int rank = peers_.rank().rank(), ranks = peers_.rank().world_size();
        peers_.send(data_.data() + size, size, (rank + 1) % ranks, sending_);
        peers_.receive(data_.data() + 2 * size, size, (rank + ranks - 1) % ranks, stream);
    }
    int wrong() const {
        const int rank = peers_.rank().rank(), ranks = peers_.rank().world_size();
        const std::vector<int> host = data_.to_host_now();
        int wrong = 0;
        for (std::size_t i = 0; i < size; i++)
            wrong += host[i] != 0 || host[size + i] != rank ||
                     host[2 * size + i] != (rank + ranks - 1) % ranks;
        return wrong;
    }

  private:
    static constexpr std::size_t size = 501;
    Peers& peers_;
    Stream& sending_;
    ArenaBuffer<int> data_;  // three arrays: broadcast, sent, received
};

}  // namespace

TEST_CASE("all operations in a row, without the host waiting") {
    for (int ranks : {2, 3, 4, 5}) {
        World world(thread_options(ranks));
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) {
            Peers peers(rank, 4 << 20);
            Stream stream, sending;
            CollectiveCheck<float> check(peers, 20'000);
            Others others(peers, sending);
            const std::vector<AllReduceAlgorithm<float>> algorithms =
                all_reduce_algorithms<float>(peers, 20'000);
            rank.barrier();
            Dice dice(99);
            for (int turn = 0; turn < 300; turn++) {
                const std::size_t kind = dice.roll(std::size(all_reduces) + 2);
                if (kind == std::size(all_reduces)) {
                    others.broadcast(stream);
                } else if (kind > std::size(all_reduces)) {
                    others.pass_on(stream);
                } else {
                    const bool is_short = is_for_short_arrays(kind) || dice.roll(2) == 0;
                    check.all_reduce(algorithms[kind].run,
                                     dice.turn(dice.roll(is_short ? 100 : 16'000)), stream);
                }
            }
            peers.synchronize(stream);
            peers.synchronize(sending);
            wrong += check.wrong() + others.wrong();
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
    }
}

TEST_CASE("operations on two streams run in the order of the calls") {
    World world(thread_options(4));
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        Peers peers(rank, 4 << 20);
        std::array<Stream, 2> streams;
        std::array<CollectiveCheck<int>, 2> checks{CollectiveCheck<int>(peers, 9000),
                                                   CollectiveCheck<int>(peers, 9000)};
        const std::vector<AllReduceAlgorithm<int>> algorithms =
            all_reduce_algorithms<int>(peers, 9000);
        rank.barrier();
        Dice dice(5);
        for (int turn = 0; turn < 100; turn++) {
            const std::size_t which = dice.roll(2);
            checks[which].all_reduce(algorithms[dice.roll(std::size(all_reduces))].run,
                                     dice.turn(dice.roll(9000)), streams[which]);
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
        Peers first(rank, 4 << 20), second(rank, 4 << 20);
        const std::array<Peers*, 2> peers{&first, &second};
        std::array<Stream, 2> streams;
        std::array<CollectiveCheck<int>, 2> checks{CollectiveCheck<int>(first, 20'000),
                                                   CollectiveCheck<int>(second, 20'000)};
        const std::array algorithms{all_reduce_algorithms<int>(first, 20'000),
                                    all_reduce_algorithms<int>(second, 20'000)};
        rank.barrier();
        Dice dice(7);
        for (int turn = 0; turn < 60; turn++) {
            const Turn of_both = dice.turn(dice.roll(16'000));
            const std::size_t algorithm = dice.roll(std::size(all_reduces));
            for (std::size_t i : {0, 1}) {
                const std::size_t which = rank.rank() == 1 ? 1 - i : i;  // in the opposite order
                checks[which].all_reduce(algorithms[which][algorithm].run, of_both, streams[which]);
            }
        }
        for (std::size_t i : {0, 1}) {
            peers[i]->synchronize(streams[i]);
            wrong += checks[i].wrong();
        }
    });
    REQUIRE(wrong == 0);
}

// ---- Errors

TEST_CASE("all-reduces of the same count by two algorithms are diagnosed") {
    World world(thread_options(3));
    const std::string cause = failure_of(world, [](Rank& rank) {
        Peers peers(rank, 1 << 20);
        Stream stream;
        ArenaBuffer<float> data = peers.allocate<float>(1000);
        const Call call = reduction_call("all_reduce", data.data(), data.data(), 1000,
                                         ReduceOp::sum, "gradients");
        if (rank.rank() == 1)
            ring_all_reduce(peers, call, stream);
        else
            two_shot_all_reduce(peers, call, stream);
        peers.synchronize(stream);
        rank.barrier();
    });
    CAPTURE(cause);
    REQUIRE(has(cause, "operation 1, ring all_reduce sum of 1000 float (\"gradients\")"));
    REQUIRE(has(cause, "operation 1, all_reduce sum of 1000 float (\"gradients\")"));
}

namespace {

// Returns the error of rank 0 if it alone calls algorithm number `algorithm`.
std::string refusal_of(std::size_t algorithm, std::size_t count, bool input_is_elsewhere,
                       bool output_is_elsewhere) {
    World world(thread_options(2));
    return failure_of(world, [&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        Stream stream;
        ArenaBuffer<float> data = peers.allocate<float>(100);
        Buffer<float> other(100);
        const auto algorithms = all_reduce_algorithms<float>(peers, 1000);
        rank.barrier();
        if (rank.rank() == 0)
            algorithms[algorithm].run(input_is_elsewhere ? other.data() : data.data(),
                                      output_is_elsewhere ? other.data() : data.data(), count,
                                      ReduceOp::sum, stream, "");
        rank.barrier();
    });
}

}  // namespace

TEST_CASE("calls that make no sense are refused") {
    for (const std::size_t count : {std::size_t{1'000'000}, SIZE_MAX / 4 + 2, SIZE_MAX})
        for (std::size_t algorithm = 0; algorithm < std::size(all_reduces); algorithm++) {
            const std::string refusal = refusal_of(algorithm, count, false, false);
            CAPTURE(refusal, count, all_reduces[algorithm].name);
            REQUIRE(has(refusal, is_on_host(algorithm)
                                     ? "a HostRing for 1000 elements cannot reduce "
                                 : is_for_short_arrays(algorithm)
                                     ? ": it is for up to "
                                     : ": the data does not lie in this rank's arena"));
        }
    for (const bool input_is : {false, true})
        for (std::size_t algorithm = 0; algorithm < std::size(all_reduces); algorithm++) {
            if (is_on_host(algorithm) || is_for_short_arrays(algorithm))
                continue;  // their arrays may lie anywhere: no other rank accesses them
            CAPTURE(all_reduces[algorithm].name, input_is);
            REQUIRE(has(refusal_of(algorithm, 100, input_is, !input_is),
                        ": the data does not lie in this rank's arena"));
        }
}

}  // namespace ddp::test
