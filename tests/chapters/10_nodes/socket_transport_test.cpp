// TCP as a transport: order, sizes, a receiver that does not come, strangers, and an end that is
// gone.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <list>

#include "05_ranks/coordinator/connection.hpp"
#include "common/report/bench.hpp"
#include "tests/chapters/10_nodes/thread_transport.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {
namespace {

using namespace std::chrono_literals;

using Bytes = std::vector<std::byte>;
using Work = std::function<void(Rank&, Transport&)>;

constexpr int channel = 3;
constexpr double patience_s = 20;

// Runs rank 0 on node a and rank 1 on node b, each with a transport. Returns the first cause of
// failure, or "".
std::string failure_of_two(const Work& zero, const Work& one) {
    return failure_on_nodes({"a", "b"}, [&](Rank& rank) {
        const auto transport = make_socket_transport(rank);
        (rank.rank() == 0 ? zero : one)(rank, *transport);
        rank.barrier();
    });
}

// `size` bytes that only message `number` of this size has.
Bytes message(std::size_t size, std::size_t number) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; i++)
        bytes[i] = static_cast<std::byte>(number * 131 + i * 7 + i / 251);
    return bytes;
}

void wait_until_done(Transport& transport, Wire& wire, std::uint64_t messages) {
    for (const Stopwatch watch; wire.done() < messages; transport.wait(10ms))
        REQUIRE(watch.seconds() < patience_s);
}

// The ports at which sockets of this process listen.
std::vector<std::uint16_t> ports_of_this_process() {
    std::vector<std::uint16_t> ports;
    for (int socket = 3; socket < 256; socket++) {
        int listens = 0;
        socklen_t size = sizeof listens;
        sockaddr_in here{};
        socklen_t address_size = sizeof here;
        if (getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
            getsockname(socket, reinterpret_cast<sockaddr*>(&here), &address_size) == 0)
            ports.push_back(ntohs(here.sin_port));
    }
    return ports;
}

}  // namespace

TEST_CASE("sockets: messages of all sizes arrive in their order, on each channel") {
    const std::vector<std::size_t> sizes{1, 0, 7, 4096, 65'537, 3, 1'000'003, 63 << 10};
    const std::string failure = failure_of_two(
        [&](Rank&, Transport& transport) {
            std::vector<Bytes> sent;
            for (const int each : {channel, channel + 1})
                for (std::size_t i = 0; i < sizes.size(); i++)
                    sent.push_back(message(sizes[i], i + static_cast<std::size_t>(each)));
            for (std::size_t i = 0; i < sent.size(); i++)
                transport
                    .wire_to(1, i < sizes.size() ? channel : channel + 1, SendIsDone::data_is_free)
                    .begin(sent[i].data(), sent[i].size());
            for (const int each : {channel, channel + 1})
                wait_until_done(transport, transport.wire_to(1, each, SendIsDone::data_is_free),
                                sizes.size());
        },
        [&](Rank&, Transport& transport) {
            for (const int each : {channel + 1, channel})  // another order than they were sent in
                transport.wire_from(0, each);
            for (const int each : {channel + 1, channel}) {
                Wire& wire = transport.wire_from(0, each);
                for (std::size_t i = 0; i < sizes.size(); i++) {
                    Bytes got(sizes[i] + 5);
                    wire.begin(got.data(), got.size());
                    wait_until_done(transport, wire, i + 1);
                    got.resize(sizes[i]);
                    REQUIRE(got == message(sizes[i], i + static_cast<std::size_t>(each)));
                }
            }
        });
    REQUIRE(failure == "");
}

TEST_CASE("sockets: a sender is held back while nobody receives, and nothing is lost") {
    constexpr std::size_t count = 1000, size = 63 << 10;  // more than sockets hold
    const std::string failure = failure_of_two(
        [&](Rank& rank, Transport& transport) {
            std::vector<Bytes> sent;
            Wire& wire = transport.wire_to(1, channel, SendIsDone::data_is_free);
            for (std::size_t i = 0; i < count; i++) {
                sent.push_back(message(size, i));
                wire.begin(sent[i].data(), size);
            }
            for (int i = 0; i < 20; i++)
                transport.wait(5ms);
            REQUIRE(wire.done() < count);
            rank.barrier();
            wait_until_done(transport, wire, count);
        },
        [&](Rank& rank, Transport& transport) {
            Wire& wire = transport.wire_from(0, channel);
            transport.wait(1ms);  // takes the connection, and no more
            rank.barrier();
            Bytes got(size);
            for (std::size_t i = 0; i < count; i++) {
                wire.begin(got.data(), size);
                wait_until_done(transport, wire, i + 1);
                REQUIRE(got == message(size, i));
            }
        });
    REQUIRE(failure == "");
}

TEST_CASE("sockets: a send whose receiver must have it is not done before") {
    const std::string failure = failure_of_two(
        [&](Rank& rank, Transport& transport) {
            Bytes first = message(10, 1), second = message(20, 2);
            Wire& free = transport.wire_to(1, channel, SendIsDone::data_is_free);
            Wire& held = transport.wire_to(1, channel + 1, SendIsDone::receiver_has_it);
            free.begin(first.data(), first.size());
            held.begin(first.data(), first.size());
            held.begin(second.data(), second.size());
            wait_until_done(transport, free, 1);
            transport.wait(20ms);
            REQUIRE(held.done() == 0);
            rank.barrier();  // now rank 1 receives the first one
            wait_until_done(transport, held, 1);
            rank.barrier();
            transport.wait(20ms);
            REQUIRE(held.done() == 1);
            rank.barrier();  // ... and the second
            wait_until_done(transport, held, 2);
        },
        [&](Rank& rank, Transport& transport) {
            Wire& wire = transport.wire_from(0, channel + 1);
            Bytes got(20);
            rank.barrier();
            for (const std::uint64_t messages : {1, 2}) {
                wire.begin(got.data(), got.size());
                wait_until_done(transport, wire, messages);
                if (messages == 1) {
                    rank.barrier();
                    rank.barrier();
                }
            }
            REQUIRE(got == message(20, 2));
        });
    REQUIRE(failure == "");
}

TEST_CASE("sockets: a wait ends as soon as something arrives") {
    const std::string failure = failure_of_two(
        [&](Rank& rank, Transport& transport) {
            Bytes bytes = message(10, 1);
            Wire& wire = transport.wire_to(1, channel, SendIsDone::data_is_free);
            wire.begin(bytes.data(), bytes.size());
            rank.barrier();
            wire.begin(bytes.data(), bytes.size());
            rank.barrier();
        },
        [&](Rank& rank, Transport& transport) {
            Bytes got(10);
            Wire& wire = transport.wire_from(0, channel);
            wire.begin(got.data(), got.size());
            wait_until_done(transport, wire, 1);
            wire.begin(got.data(), got.size());
            rank.barrier();
            const Stopwatch watch;
            while (wire.done() < 2)
                transport.wait(std::chrono::seconds(60));
            REQUIRE(watch.seconds() < 30);
            rank.barrier();
        });
    REQUIRE(failure == "");
}

TEST_CASE("sockets: strangers are not taken for ranks, and keep nobody awake") {
    const std::string failure = failure_of_two(
        [&](Rank& rank, Transport& transport) {
            const std::string garbage(100, 'x');
            std::list<Descriptor> strangers;
            for (const std::uint16_t port : ports_of_this_process())
                for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, garbage.size()}) {
                    strangers.push_back(connect_to("127.0.0.1", port));
                    if (strangers.back().number() >= 0 && bytes > 0)
                        send(strangers.back().number(), garbage.data(), bytes, MSG_NOSIGNAL);
                }
            REQUIRE(strangers.size() >= 6);
            rank.barrier();
            Bytes sent = message(50'000, 9);
            Wire& wire = transport.wire_to(1, channel, SendIsDone::data_is_free);
            wire.begin(sent.data(), sent.size());
            wait_until_done(transport, wire, 1);
            rank.barrier();
        },
        [&](Rank& rank, Transport& transport) {
            rank.barrier();
            Wire& wire = transport.wire_from(0, channel);
            Bytes got(50'000);
            wire.begin(got.data(), got.size());
            wait_until_done(transport, wire, 1);
            REQUIRE(got == message(50'000, 9));
            for (int i = 0; i < 100; i++)
                transport.wait(1ms);  // each takes one stranger
            const Stopwatch watch;
            transport.wait(50ms);
            REQUIRE(watch.seconds() > 0.04);
            rank.barrier();
        });
    REQUIRE(failure == "");
}

TEST_CASE("sockets: an end that is gone is no error, and keeps nobody awake") {
    const std::string failure = failure_on_nodes({"a", "b"}, [&](Rank& rank) {
        auto transport = make_socket_transport(rank);
        Bytes bytes = message(10, 1);
        if (rank.rank() == 1) {
            Wire& to = transport->wire_to(0, channel, SendIsDone::data_is_free);
            to.begin(bytes.data(), bytes.size());
            Wire& from = transport->wire_from(0, channel);
            from.begin(bytes.data(), bytes.size());
            wait_until_done(*transport, from, 1);
            transport.reset();
            rank.barrier();
            return;
        }
        Wire& to = transport->wire_to(1, channel, SendIsDone::data_is_free);
        Wire& from = transport->wire_from(1, channel);
        to.begin(bytes.data(), bytes.size());
        from.begin(bytes.data(), bytes.size());
        wait_until_done(*transport, from, 1);
        rank.barrier();
        from.begin(bytes.data(), bytes.size());
        Bytes large(1 << 20);
        for (int i = 0; i < 3; i++) {
            to.begin(large.data(), large.size());
            transport->wait(5ms);
            REQUIRE(to.done() <= 2);
            REQUIRE(from.done() == 1);
        }
        const Stopwatch watch;
        transport->wait(50ms);
        REQUIRE(watch.seconds() > 0.04);
    });
    REQUIRE(failure == "");
}

TEST_CASE("sockets: what cannot be is said in a sentence") {
    const auto failure = [](const Work& zero, const Work& one) {
        return failure_on_nodes({"a", "b"}, [&](Rank& rank) {
            auto transport = make_socket_transport(rank);
            (rank.rank() == 0 ? zero : one)(rank, *transport);
            if (rank.rank() == 1)
                transport.reset();
            rank.barrier();
            Bytes bytes(100);
            if (rank.rank() == 0)
                transport->wire_to(1, channel, SendIsDone::data_is_free)
                    .begin(bytes.data(), bytes.size());
            rank.barrier();
        });
    };
    const Work nothing = [](Rank&, Transport&) {};
    const std::string refused = failure(nothing, nothing);
    CAPTURE(refused);
    REQUIRE(has(refused, "rank 0: no connection can be made to rank 1"));
    REQUIRE(has(refused, " at 127.0.0.1, port "));

    const std::string long_one = failure_of_two(
        [](Rank& rank, Transport& transport) {
            Bytes bytes(100);
            transport.wire_to(1, channel, SendIsDone::data_is_free)
                .begin(bytes.data(), bytes.size());
            rank.barrier();
        },
        [](Rank&, Transport& transport) {
            Bytes bytes(10);
            Wire& wire = transport.wire_from(0, channel);
            wire.begin(bytes.data(), bytes.size());
            wait_until_done(transport, wire, 1);
        });
    CAPTURE(long_one);
    REQUIRE(has(long_one, "rank 1: rank 0"));
    REQUIRE(has(long_one, "has sent 100 bytes where at most 10 were expected"));
}

}  // namespace ddp::test
