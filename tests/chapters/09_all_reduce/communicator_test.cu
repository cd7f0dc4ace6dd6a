// The native Communicator: every call, on ranks that are threads, and its errors.
#include "09_all_reduce/communicator.hpp"

#include <atomic>
#include <optional>

#include "07_broadcast/collective.hpp"
#include "common/gpu/captured_graph.hpp"
#include "tests/chapters/09_all_reduce/all_calls.hpp"
#include "tests/chapters/support/collective_values.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Sends to the right neighbour on one stream while receiving from the left one on another. Returns
// the number of wrong elements.
template <class T>
int wrong_on_two_streams(Communicator& communicator, std::size_t count) {
    const int rank = communicator.rank().rank(), ranks = communicator.world_size();
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    ArenaBuffer<T> sent = communicator.allocate<T>(count);
    ArenaBuffer<T> received = communicator.allocate<T>(count);
    sent.copy_from(numbers_of<T>(rank, 1, 0, count));
    received.copy_from(numbers_of<T>(rank, 2, 0, count));
    Stream sending, receiving;
    communicator.send(sent.data(), count, right, sending, "round");
    communicator.receive(received.data(), count, left, receiving, "round");
    communicator.synchronize(sending);
    communicator.synchronize(receiving);
    const std::vector<T> host = received.to_host_now(), expected = numbers_of<T>(left, 1, 0, count);
    int wrong = 0;
    for (std::size_t i = 0; i < count; i++)
        wrong += static_cast<double>(host[i]) != static_cast<double>(expected[i]);
    return wrong;
}

void require_all_calls_of(int fewest, int most) {
    for (int ranks = fewest; ranks <= most; ranks++) {
        const auto n = static_cast<std::size_t>(ranks);
        const std::vector<std::size_t> counts{0, 1, n - 1, n + 1, 509};
        constexpr std::size_t large = 5003;  // too long for one-shot
        World world(thread_options(ranks));
        std::atomic<std::size_t> wrong = 0;
        world.run([&](Rank& rank) {
            const auto communicator =
                make_native_communicator(rank, arena_bytes_for(ranks, counts, large));
            wrong += communicator->kind() != "native" || communicator->world_size() != ranks;
            for (const CallResult& result :
                 make_all_calls(*communicator, counts, large, order_on_one_node(ranks)))
                wrong += result.wrong;
            if (ranks > 1)
                wrong += static_cast<std::size_t>(wrong_on_two_streams<float>(*communicator, 509));
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
    }
}

__global__ void count_up(std::size_t count, int* numbers) {
    for (const std::size_t i : grid_range(count))
        numbers[i]++;
}

}  // namespace

TEST_CASE("every call of the Communicator, world sizes 1 to 5, every type", "[exhaustive]") {
    require_all_calls_of(1, 5);
}

TEST_CASE("every call of the Communicator, world sizes 8 and 9, every type",
          "[exhaustive][.long]") {
    require_all_calls_of(8, 9);
}

namespace {

// Returns the error if rank 0 makes this call.
std::string refusal_of(const std::function<void(Communicator&, float*, Stream&)>& call) {
    World world(thread_options(2));
    return failure_of(world, [&](Rank& rank) {
        const auto communicator = make_native_communicator(rank, 1 << 20);
        Stream stream;
        ArenaBuffer<float> data = communicator->allocate<float>(100);
        rank.barrier();
        if (rank.rank() == 0)
            call(*communicator, data.data(), stream);
        rank.barrier();
    });
}

}  // namespace

// An odd number of collectives, on two streams: every other launch has the other half of the
// staging area.
TEST_CASE("captured collectives can be launched again and again, also between others") {
    for (const int ranks : {1, 2, 4}) {
        World world(thread_options(ranks));
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) {
            const auto communicator = make_native_communicator(rank, 1 << 20);
            Collectives& collectives = Collectives::over(*communicator->capturable());
            Stream stream, other;
            Event forked, joined;
            constexpr std::size_t count = 9000;  // too long for one-shot
            ArenaBuffer<int> numbers = communicator->allocate<int>(count);
            ArenaBuffer<int> sums = communicator->allocate<int>(count + 2);
            numbers.copy_from(std::vector<int>(count, rank.rank()));
            sums.copy_from(std::vector<int>(sums.size()));
            const auto add_up = [&] {
                launch(stream, grid_for(count), count_up, count, numbers.data());
                forked.record(stream);
                communicator->all_reduce(numbers.data(), sums.data(), 1, ReduceOp::sum, stream);
                other.wait(forked);
                communicator->all_reduce(numbers.data(), sums.data() + 1, count, ReduceOp::sum,
                                         other);
                joined.record(other);
                stream.wait(joined);
                communicator->reduce(numbers.data(), sums.data() + count + 1, 1, ReduceOp::sum, 0,
                                     stream);
            };
            std::optional<CapturedGraph> graph;
            rank.barrier();
            const std::uint64_t captured =
                collectives.capture([&] { graph.emplace(stream, add_up); });
            rank.barrier();
            wrong += captured != 3;
            for (int turn = 1; turn <= 30; turn++) {
                if (turn % 3 == 0)
                    add_up();
                else
                    collectives.launch_captured(captured, stream, [&] { graph->launch(stream); });
                communicator->synchronize(stream);
                std::vector<int> all(sums.size(), ranks * (ranks - 1) / 2 + ranks * turn);
                std::vector<int> found = sums.to_host_now();
                if (rank.rank() != 0)  // only the root has the last one
                    found.back() = all.back();
                wrong += found != all;
            }
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
    }
}

TEST_CASE("calls of the Communicator that make no sense are refused") {
    REQUIRE(has(refusal_of([](Communicator& communicator, float* data, Stream& stream) {
                    Collectives::over(*communicator.capturable()).capture([&] {
                        communicator.send(data, 1, 1, stream);
                    });
                }),
                "send to rank 1: a message has a number, which a graph would repeat"));
    constexpr ReduceOp sum = ReduceOp::sum;
    const auto requires_text = [](const std::string& refusal, const std::string& text) {
        CAPTURE(refusal);
        REQUIRE(has(refusal, text));
    };
    for (const int wrong : {-1, 2}) {
        const std::string rank = "rank " + std::to_string(wrong) + ": the ranks are 0 to 1";
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.broadcast(d, 1, wrong, s); }),
            "broadcast from " + rank);
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.reduce(d, d, 1, sum, wrong, s); }),
            "reduce to " + rank);
        requires_text(refusal_of([&](auto& c, float* d, Stream& s) { c.send(d, 1, wrong, s); }),
                      "send to " + rank);
        requires_text(refusal_of([&](auto& c, float* d, Stream& s) { c.receive(d, 1, wrong, s); }),
                      "receive from " + rank);
    }
    const std::string not_ours = ": the data does not lie in this ";
    for (const std::size_t count : {std::size_t{100'000'000}, SIZE_MAX / 4 + 2, SIZE_MAX}) {
        CAPTURE(count);
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.all_reduce(d, d, count, sum, s); }),
            not_ours);
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.all_gather(d, d, count, s); }),
            not_ours);
        requires_text(refusal_of([&](auto& c, float* d, Stream& s) {
                          c.reduce_scatter(d, d, count, sum, s);
                      }),
                      not_ours);
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.reduce(d, d, count, sum, 0, s); }),
            not_ours);
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.broadcast(d, count, 0, s); }),
            not_ours);
    }
    // Short or long: whether data is refused must not depend on the algorithm.
    for (const std::size_t count : {10, 50'000}) {
        Buffer<float> elsewhere(count);
        requires_text(refusal_of([&](auto& c, float*, Stream& s) {
                          c.all_reduce(elsewhere.data(), elsewhere.data(), count, sum, s);
                      }),
                      not_ours);
    }
    requires_text(refusal_of([](auto& c, float* d, Stream& s) {
                      auto* bytes = reinterpret_cast<unsigned char*>(d);
                      c.all_reduce(bytes, bytes, 10, sum, s);
                  }),
                  "bytes can be sent and gathered, but not summed");
}

}  // namespace ddp::test
