// Send and receive between ranks that are threads.
#include "06_messages/peers.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "05_ranks/world.hpp"
#include "06_messages/point_to_point.hpp"
#include "06_messages/support/gate.hpp"
#include "common/report/bench.hpp"
#include "tests/chapters/06_messages/neighbours.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("what is sent arrives, at world sizes 2 to 9", "[exhaustive]") {
    for (int ranks : {2, 3, 4, 5, 9}) {
        World world(thread_options(ranks));
        for (int again = 0; again < 2; again++) {
            std::atomic<int> wrong = 0;
            world.run([&](Rank& rank) { wrong += count_wrong_at_neighbours(rank); });
            REQUIRE(wrong == 0);
        }
    }
}

TEST_CASE("many sends in a row keep their order, and a buffer may be used again after them") {
    World world(thread_options(2));
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        Stream stream;
        constexpr int rounds = 200;
        ArenaBuffer<int> data = peers.allocate<int>(rounds);
        std::vector<int> host(rounds);
        for (int i = 0; i < rounds; i++)
            host[static_cast<std::size_t>(i)] = 1000 * rank.rank() + i;
        data.copy_from(host);
        for (int i = 0; i < rounds; i++) {  // element by element, to the other end of its array
            if (rank.rank() == 0)
                peers.send(data.data() + i, 1, 1, stream);
            else
                peers.receive(data.data() + (rounds - 1 - i), 1, 0, stream);
        }
        peers.synchronize(stream);
        const std::vector<int> arrived = data.to_host_now();
        for (int i = 0; i < rounds; i++)
            wrong +=
                arrived[static_cast<std::size_t>(i)] != (rank.rank() == 0 ? i : rounds - 1 - i);
    });
    REQUIRE(wrong == 0);
}

// Returns the counter's value when it has not grown for a while.
int value_at_rest(const std::atomic<int>& counter) {
    using namespace std::chrono_literals;
    int value = -1;
    while (value != counter) {
        value = counter;
        std::this_thread::sleep_for(100ms);
    }
    return value;
}

// The receiver begins when the sender stands still. A sender without a bound would stand where its
// launch queue is full, and in strict mode keep the receiver from launching anything.
TEST_CASE("a rank that runs ahead waits before its launch queue is full") {
    constexpr int sends = 1000;
    World world(thread_options(2));
    std::atomic<int> enqueued = 0;
    int enqueued_at_rest = 0;
    world.run([&](Rank& rank) {
        Peers peers(rank, 1 << 16, 10.0);
        Stream stream;
        ArenaBuffer<int> data = peers.allocate<int>(1);
        if (rank.rank() == 1)
            enqueued_at_rest = value_at_rest(enqueued);
        for (int i = 0; i < sends; i++) {
            if (rank.rank() == 0)
                peers.send(data.data(), 1, 1, stream);
            else
                peers.receive(data.data(), 1, 0, stream);
            enqueued += rank.rank() == 0;
        }
        peers.synchronize(stream);
    });
    REQUIRE(enqueued_at_rest < static_cast<int>(Peers::max_ahead));
}

// Launches that Peers does not count fill the queue behind a receive, so the next one waits for
// room.
TEST_CASE("a time-out says that the host is inside a launch") {
    constexpr int nearly_full = 1015;
    for (bool fills : {false, true}) {
        World world(thread_options(2));
        const std::string cause = failure_of(world, [&](Rank& rank) {
            Peers peers(rank, 1 << 16, 1.0);
            Stream stream;
            ArenaBuffer<int> data = peers.allocate<int>(1);
            if (rank.rank() == 0) {
                peers.receive(data.data(), 1, 1, stream);
                for (int i = 0; fills && i < nearly_full; i++)
                    DDP_CHECK(cudaMemsetAsync(data.data(), 0, sizeof(int), stream));
                for (int i = 0; i < 10; i++)
                    peers.receive(data.data(), 1, 1, stream);
            }
            rank.barrier();
            peers.synchronize(stream);
        });
        CAPTURE(cause);
        REQUIRE(has(cause,
                    "rank 0: waited 1.0 s in operation 1, receive of 1 int from rank 1; "
                    "rank 1 has begun no operation"));
        REQUIRE(has(cause, " and is inside a launch; rank 1 has enqueued 0 operations; a launch") ==
                fills);
    }
}

TEST_CASE("a time-out tells what was enqueued and has not begun") {
    World world(thread_options(2));
    const std::string cause = failure_of(world, [&](Rank& rank) {
        Peers peers(rank, 1 << 16, 0.3);
        Stream stream;
        Gate gate(rank);
        ArenaBuffer<int> data = peers.allocate<int>(1);
        rank.barrier();  // no rank may ask for memory beside the others' kernels
        if (rank.rank() == 1)
            gate.close(stream);
        for (int i = 0; i < 3; i++)
            if (rank.rank() == 0)
                peers.receive(data.data(), 1, 1, stream);
            else
                peers.send(data.data(), 1, 0, stream);
        peers.synchronize(stream);
    });
    CAPTURE(cause);
    REQUIRE(has(cause, "rank 1 has begun no operation"));
    REQUIRE(has(cause, "; rank 0 has enqueued 3 operations; rank 1 has enqueued 3 operations"));
}

TEST_CASE("two sends against each other are diagnosed, both operations are quoted") {
    World world(thread_options(2));
    std::atomic<int> overwritten = 0;
    const std::string cause = failure_of(world, [&](Rank& rank) {
        Peers peers(rank, 1 << 16, 1.0);
        Stream stream;
        ArenaBuffer<float> data = peers.allocate<float>(100);
        const std::vector<float> own(100, static_cast<float>(rank.rank()));
        data.copy_from(own);
        peers.send(data.data(), 100, 1 - rank.rank(), stream, rank.rank() == 0 ? "here" : "there");
        peers.receive(data.data(), 100, 1 - rank.rank(), stream);
        stream.synchronize();
        overwritten += data.to_host_now() != own;
        peers.synchronize(stream);
    });
    CAPTURE(cause);
    // Each finds what the other has posted, but the other may be reading what it would overwrite.
    REQUIRE(overwritten == 0);
    REQUIRE(has(cause, "waited 1.0 s in operation 1, send of 100 float to rank "));
    REQUIRE(has(cause, "(\"here\")"));
    REQUIRE(has(cause, "(\"there\")"));
    REQUIRE(has(cause, "both send, and neither receives; one of them must receive first"));
    std::atomic<int> wrong = 0;
    World patient(thread_options(2));
    patient.run([&](Rank& rank) { wrong += count_wrong_at_neighbours(rank); });
    REQUIRE(wrong == 0);
}

TEST_CASE("another count, or another type, is diagnosed at once") {
    World world(thread_options(3));
    for (bool other_type : {false, true}) {
        const auto begin = std::chrono::steady_clock::now();
        const std::string cause = failure_of(world, [&](Rank& rank) {
            Peers peers(rank, 1 << 16);
            Stream stream;
            ArenaBuffer<float> data = peers.allocate<float>(100);
            if (rank.rank() == 2)
                peers.send(data.data(), 100, 1, stream);
            else if (rank.rank() == 1 && other_type)
                peers.receive(reinterpret_cast<int*>(data.data()), 100, 2, stream);
            else if (rank.rank() == 1)
                peers.receive(data.data(), 99, 2, stream);
            stream.synchronize();  // not by Peers: the watchdog must find it
            rank.barrier();
        });
        REQUIRE(cause == std::string("rank 1: in operation 1, receive of ") +
                             (other_type ? "100 int" : "99 float") +
                             " from rank 2, but rank 2 is in operation 1, send of 100 float to "
                             "rank 1: both must say the same count and type");
        REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
    }
}

TEST_CASE("a peer that does not come is named with what it does instead") {
    World world(thread_options(3));
    const std::string cause = failure_of(world, [](Rank& rank) {
        Peers peers(rank, 1 << 16, 1.0);
        Stream stream;
        ArenaBuffer<int> data = peers.allocate<int>(7);
        if (rank.rank() == 0)
            peers.receive(data.data(), 7, 2, stream);
        peers.synchronize(stream);
        if (rank.rank() != 0)
            while (true) {
                rank.check();
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
    });
    REQUIRE(cause ==
            "rank 0: waited 1.0 s in operation 1, receive of 7 int from rank 2; "
            "rank 2 has begun no operation");  // --timeout would not change this limit
}

TEST_CASE("a link that is too slow for the limit of a wait is named at once") {
    World world(thread_options(2));
    const Stopwatch watch;
    const std::string cause = failure_of(world, [](Rank& rank) {
        Peers peers(rank, 1 << 16, 15.0, LinkSpeed{250, 0});  // 16 s for what follows
        ArenaBuffer<int> data = peers.allocate<int>(1000);
        Stream stream;
        if (rank.rank() == 0)
            peers.send(data.data(), 1000, 1, stream);
        else
            peers.receive(data.data(), 1000, 0, stream);
        peers.synchronize(stream);
    });
    REQUIRE(cause ==
            "rank 1: operation 1, receive of 1000 int from rank 0 would take longer than 15.0 s "
            "over the simulated link: give a faster --link");  // --timeout would not change it
    REQUIRE(watch.seconds() < 10);
}

TEST_CASE("a rank that throws releases kernels that wait") {
    World world(thread_options(3));
    const auto begin = std::chrono::steady_clock::now();
    const std::string cause = failure_of(world, [](Rank& rank) {
        Peers peers(rank, 1 << 16);
        Stream stream;
        ArenaBuffer<int> data = peers.allocate<int>(7);
        if (rank.rank() == 1)
            throw std::runtime_error("broken on purpose");
        peers.receive(data.data(), 7, 1, stream);
        peers.synchronize(stream);
    });
    REQUIRE(cause == "rank 1: broken on purpose");
    REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

TEST_CASE(
    "a rank that throws does not wait for its own kernels first, though their stream goes first") {
    World world(thread_options(2, 0));  // without a time-out they would wait for ever
    const std::string cause = failure_of(world, [](Rank& rank) {
        Peers peers(rank, 1 << 16);
        ArenaBuffer<int> data = peers.allocate<int>(7);
        Stream stream;
        if (rank.rank() == 0) {
            peers.receive(data.data(), 7, 1, stream);
            throw std::runtime_error("broken on purpose");
        }
        rank.barrier();
    });
    REQUIRE(cause == "rank 0: broken on purpose");
}

TEST_CASE("requests that make no sense") {
    World world(thread_options(2));
    const auto refusal = [&](const std::function<void(Peers&, Stream&, ArenaBuffer<int>&)>& ask) {
        return failure_of(world, [&](Rank& rank) {
            Peers peers(rank, 4096);
            Stream stream;
            ArenaBuffer<int> data = peers.allocate<int>(10);
            if (rank.rank() == 0)
                ask(peers, stream, data);
            rank.barrier();
        });
    };
    REQUIRE(
        has(refusal([](Peers& p, Stream& s, ArenaBuffer<int>& d) { p.send(d.data(), 1, 0, s); }),
            "send to rank 0, which is this rank itself: there are ranks 0 to 1"));
    REQUIRE(
        has(refusal([](Peers& p, Stream& s, ArenaBuffer<int>& d) { p.receive(d.data(), 1, 2, s); }),
            "receive from rank 2: there are ranks 0 to 1"));
    REQUIRE(has(refusal([](Peers& p, Stream& s, ArenaBuffer<int>&) {
                    Buffer<int> elsewhere(10);
                    p.send(elsewhere.data(), 10, 1, s);
                }),
                "send of 10 int to rank 1: the data does not lie in this rank's arena"));
    REQUIRE(has(refusal([](Peers& p, Stream& s, ArenaBuffer<int>& d) {
                    p.send(d.data(), 1'000'000, 1, s);
                }),
                "send of 1000000 int to rank 1: the data does not lie in this rank's arena"));
    REQUIRE(has(refusal([](Peers& p, Stream&, ArenaBuffer<int>&) { p.allocate<int>(5000); }),
                "has no room for 19.5 KiB: make the Peers with a larger arena"));
    REQUIRE(has(refusal([](Peers& p, Stream& s, ArenaBuffer<int>&) {
                    const Stream other;
                    p.wait_for_last_on(other, s);
                }),
                "call peers.enqueued(stream) after each launch"));
}

TEST_CASE("an arena hands out what it gets back") {
    SharedArena arena(10 * SharedArena::unit);
    std::vector<std::size_t> parts;
    for (int i = 0; i < 10; i++)
        parts.push_back(arena.take(1));
    REQUIRE(parts.back() == 9 * SharedArena::unit);
    REQUIRE_THROWS_AS(arena.take(1), std::runtime_error);
    for (int i : {3, 5, 4, 0, 9})
        arena.give_back(parts[static_cast<std::size_t>(i)]);
    REQUIRE(arena.take(3 * SharedArena::unit) ==
            3 * SharedArena::unit);  // three neighbours became one
    REQUIRE(arena.take(SharedArena::unit) == 0);
}

TEST_CASE("the cost of a message is a line, whatever one measurement says") {
    std::vector<MessageTime> times;
    for (std::size_t bytes = 4; bytes <= 1 << 20; bytes *= 4)
        times.push_back({bytes, 2e-6 + static_cast<double>(bytes) * 1e-9});
    times[1].seconds = 1e-9;
    times[8].seconds = 1;
    const CostModel model = fit_cost(times);
    REQUIRE(model.alpha_s == Approx(2e-6).epsilon(0.05));
    REQUIRE(model.beta_s_per_byte == Approx(1e-9).epsilon(0.05));
    REQUIRE(model.seconds(1000) == Approx(3e-6).epsilon(0.05));
    REQUIRE_THROWS_AS(fit_cost(std::span(times).first(2)), std::invalid_argument);
}

}  // namespace ddp::test
