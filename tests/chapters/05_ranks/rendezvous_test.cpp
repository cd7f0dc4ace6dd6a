// How processes find each other. Here both sides are threads, and other programs call as well.
#include "05_ranks/rendezvous.hpp"

#include <poll.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using namespace std::chrono_literals;

std::vector<Member> members_of(int world_size, int rank) {
    std::vector<Member> members(static_cast<std::size_t>(world_size));
    members[static_cast<std::size_t>(rank)] = {"node" + std::to_string(rank % 2), 1000 + rank, 0, 1,
                                               ""};
    return members;
}

// Returns the error that joining ends with, or "".
std::string join(const RendezvousEndpoint& place, int rank, int world_size, double limit_s,
                 std::vector<Member>* found = nullptr) {
    std::vector<Member> members = members_of(world_size, rank);
    try {
        const auto connection = join_ranks(place, rank, members, limit_s);
        if (found != nullptr)
            *found = members;
        return "";
    } catch (const std::exception& error) {
        return error.what();
    }
}

std::string to_string(const std::vector<Member>& members) {
    std::string text;
    for (const Member& member : members)
        text += member.node + " " + std::to_string(member.process) + " " +
                std::to_string(member.local_rank) + "/" + std::to_string(member.local_world_size) +
                "; ";
    return text;
}

// Rank 0 of a job, in a thread of its own.
struct RankZero {
    explicit RankZero(int world_size, double limit_s = 10,
                      Descriptor listener = listen_at("127.0.0.1", 0))
        : place{{"127.0.0.1"}, port_of(listener), "job"},
          members(members_of(world_size, 0)),
          reception(std::move(listener), place.job),
          connections(std::async(std::launch::async, [this, limit_s] {
              return reception.receive_ranks(members, limit_s);
          })) {}

    const RendezvousEndpoint place;
    std::vector<Member> members;
    Reception reception;
    std::future<Connections> connections;
};

TEST_CASE("every rank learns where all others are") {
    RankZero rank_0(5);
    std::vector<std::vector<Member>> found(5);
    std::vector<std::thread> ranks;
    for (int rank = 4; rank > 0; rank--)
        ranks.emplace_back(
            [&, rank] { join(rank_0.place, rank, 5, 10, &found[static_cast<std::size_t>(rank)]); });
    const Connections connections = rank_0.connections.get();
    found[0] = rank_0.members;
    for (std::thread& rank : ranks)
        rank.join();
    for (const std::vector<Member>& members : found)
        REQUIRE(to_string(members) ==
                "node0 1000 0/3; node1 1001 0/2; node0 1002 1/3; node1 1003 1/2; node0 1004 2/3; ");
    REQUIRE(connections[0] == nullptr);
    REQUIRE(connections[4] != nullptr);
}

TEST_CASE("other programs that call are refused, and do not hold up the rendezvous") {
    RankZero rank_0(2);
    const RendezvousEndpoint& place = rank_0.place;
    RendezvousEndpoint other = place;
    other.job = "another";
    const std::string wrong_job = join(other, 1, 2, 0.3);
    const std::string wrong_size = join(place, 1, 3, 0.3);
    const std::string wrong_rank = join(place, 7, 8, 0.3);
    const std::string right = join(place, 1, 2, 10);
    REQUIRE(rank_0.connections.get().size() == 2);
    const std::string where =
        "could not meet the others at 127.0.0.1:" + std::to_string(place.port);
    REQUIRE(wrong_job == "rank 1 " + where +
                             ": another job meets here: its TORCHELASTIC_RUN_ID or, without "
                             "one, its options are different");
    REQUIRE(wrong_size == "rank 1 " + where + ": this job has 2 ranks, not 3");
    REQUIRE(wrong_rank == "rank 7 " + where + ": this job has 2 ranks, not 8");
    REQUIRE(right == "");
}

TEST_CASE("a second process of a rank is refused, and for good when all have met") {
    RankZero rank_0(3);
    Connection first(connect_to("127.0.0.1", rank_0.place.port));
    first.send({Message::Kind::hello, 0, 1, "job", {"node1", "4711", "3"}});
    pollfd admitted{first.descriptor(), POLLIN, 0};
    REQUIRE(poll(&admitted, 1, 10'000) == 1);
    const std::string where =
        "rank 1 could not meet the others at 127.0.0.1:" + std::to_string(rank_0.place.port) + ": ";
    const std::string refusal =
        where +
        "rank 1 is here already: process 4711 on node1 has the same RANK. If two jobs meet "
        "at this port, give each its own MASTER_PORT, or a word of its own in "
        "TORCHELASTIC_RUN_ID";
    REQUIRE(join(rank_0.place, 1, 3, 0.3) == refusal);
    REQUIRE(join(rank_0.place, 2, 3, 10) == "");
    REQUIRE(rank_0.connections.get().size() == 3);
    std::atomic<bool> is_here = true;
    const std::jthread refuses([&](const std::stop_token& end) {
        for (; !end.stop_requested(); std::this_thread::sleep_for(1ms))
            rank_0.reception.refuse_callers(rank_0.members,
                                            [&](std::size_t) { return is_here.load(); });
    });
    REQUIRE(join(rank_0.place, 1, 3, 0) == refusal);  // without a limit
    is_here = false;  // the next job's rank 1 may come before this job's rank 0 has ended
    REQUIRE(join(rank_0.place, 1, 3, 0.3) == where + "the job that meets here has yet to end");
}

TEST_CASE("strangers cost rank 0 little, however many call and whatever they announce") {
    RankZero rank_0(2);
    const RendezvousEndpoint& place = rank_0.place;
    // One announces 32 MiB, and is refused as soon as it has.
    Connection talkative(connect_to("127.0.0.1", place.port));
    const Message long_one{Message::Kind::hello, 0, 1, std::string(std::size_t{32} << 20, 'x'), {}};
    REQUIRE_THROWS(talkative.send(long_one));
    // Others say nothing. Of them rank 0 keeps some, and closes those that have come first.
    std::vector<Descriptor> silent;
    for (int i = 0; i < 200; i++)
        silent.push_back(connect_to("127.0.0.1", place.port));
    for (Descriptor& each : silent)
        REQUIRE(each.number() >= 0);
    pollfd closed{silent[0].number(), POLLIN, 0};
    REQUIRE(poll(&closed, 1, 10'000) == 1);
    REQUIRE(join(place, 1, 2, 10) == "");
    REQUIRE(rank_0.connections.get().size() == 2);
}

TEST_CASE("a rank that does not come is named") {
    RankZero rank_0(4, 1);
    auto rank_2 = std::async(std::launch::async, [&] { return join(rank_0.place, 2, 4, 1.5); });
    REQUIRE_THROWS_WITH(rank_0.connections.get(),
                        "rank 0 waited for rank 1, rank 3 at port " +
                            std::to_string(rank_0.place.port) +
                            " in vain: were all processes of the job started?");
    REQUIRE(rank_2.get().starts_with("rank 2 could not meet the others at 127.0.0.1:"));
}

TEST_CASE("a rank may come before rank 0 listens, and has several addresses to try") {
    Descriptor listener = listen_at("127.0.0.1", 0);
    const RendezvousEndpoint place{{"127.0.0.2", "127.0.0.1"}, port_of(listener), "job"};
    listener = Descriptor();  // the port is free again
    auto rank_1 = std::async(std::launch::async, [&] { return join(place, 1, 2, 10); });
    std::this_thread::sleep_for(100ms);
    RankZero rank_0(2, 10, listen_at("127.0.0.1", place.port));
    REQUIRE(rank_0.connections.get().size() == 2);
    REQUIRE(rank_1.get() == "");
}

TEST_CASE("a port that another program has is named") {
    const Descriptor listener = listen_at("127.0.0.1", 0);
    REQUIRE_THROWS_WITH(listen_at("127.0.0.1", port_of(listener)),
                        "rank 0 cannot listen at port " + std::to_string(port_of(listener)) +
                            ": Address already in use; set MASTER_PORT to a free one");
}

}  // namespace
}  // namespace ddp::test
