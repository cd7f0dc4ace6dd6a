// How processes find each other. Here both sides are threads, and other programs call as well.
#include "05_ranks/rendezvous.hpp"

#include <poll.h>

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

std::string text_of(const std::vector<Member>& members) {
    std::string text;
    for (const Member& member : members)
        text += member.node + " " + std::to_string(member.process) + " " +
                std::to_string(member.local_rank) + "/" + std::to_string(member.local_world_size) +
                "; ";
    return text;
}

TEST_CASE("every rank learns where all others are") {
    const Descriptor listener = listen_at("127.0.0.1", 0);
    const RendezvousEndpoint place{{"127.0.0.1"}, port_of(listener), "job"};
    std::vector<std::vector<Member>> found(5);
    std::vector<std::thread> ranks;
    for (int rank = 4; rank > 0; rank--)
        ranks.emplace_back(
            [&, rank] { join(place, rank, 5, 10, &found[static_cast<std::size_t>(rank)]); });
    found[0] = members_of(5, 0);
    const Connections connections = receive_ranks(listener, "job", found[0], 10);
    for (std::thread& rank : ranks)
        rank.join();
    for (const std::vector<Member>& members : found)
        REQUIRE(text_of(members) ==
                "node0 1000 0/3; node1 1001 0/2; node0 1002 1/3; node1 1003 1/2; node0 1004 2/3; ");
    REQUIRE(connections[0] == nullptr);
    REQUIRE(connections[4] != nullptr);
}

TEST_CASE("other programs that call are refused, and do not hold up the rendezvous") {
    const Descriptor listener = listen_at("127.0.0.1", 0);
    RendezvousEndpoint place{{"127.0.0.1"}, port_of(listener), "job"};
    std::vector<Member> members = members_of(2, 0);
    auto rank_0 = std::async(std::launch::async,
                             [&] { return receive_ranks(listener, "job", members, 10).size(); });
    RendezvousEndpoint other = place;
    other.job = "another";
    const std::string wrong_job = join(other, 1, 2, 0.3);
    const std::string wrong_size = join(place, 1, 3, 0.3);
    const std::string wrong_rank = join(place, 7, 8, 0.3);
    const std::string right = join(place, 1, 2, 10);
    REQUIRE(rank_0.get() == 2);
    const std::string where =
        "could not meet the others at 127.0.0.1:" + std::to_string(place.port);
    REQUIRE(wrong_job == "rank 1 " + where + ": another job meets here");
    REQUIRE(wrong_size == "rank 1 " + where + ": this job has 2 ranks, not 3");
    REQUIRE(wrong_rank == "rank 7 " + where + ": this job has 2 ranks, not 8");
    REQUIRE(right == "");
}

TEST_CASE("a second process of a rank learns that, even when all have met") {
    const Descriptor listener = listen_at("127.0.0.1", 0);
    const RendezvousEndpoint place{{"127.0.0.1"}, port_of(listener), ""};
    std::vector<Member> members = members_of(3, 0);
    auto rank_0 = std::async(std::launch::async,
                             [&] { return receive_ranks(listener, "", members, 10).size(); });
    auto first = std::async(std::launch::async, [&] { return join(place, 1, 3, 10); });
    // Whoever comes second is refused, tries again, and finds nobody once all have met.
    auto second = std::async(std::launch::async, [&] {
        std::vector<Member> own = members_of(3, 1);
        own[1].process = 4711;
        try {
            join_ranks(place, 1, own, 1.5);
            return std::string();
        } catch (const std::exception& error) {
            return std::string(error.what());
        }
    });
    std::this_thread::sleep_for(500ms);
    REQUIRE(join(place, 2, 3, 10) == "");
    REQUIRE(rank_0.get() == 3);
    const std::string both = first.get() + second.get();
    REQUIRE(both.find("rank 1 is here already: process ") != std::string::npos);
    REQUIRE(both.ends_with("has the same RANK"));
}

TEST_CASE("strangers cost rank 0 little, however many call and whatever they announce") {
    const Descriptor listener = listen_at("127.0.0.1", 0);
    const RendezvousEndpoint place{{"127.0.0.1"}, port_of(listener), "job"};
    std::vector<Member> members = members_of(2, 0);
    auto rank_0 = std::async(std::launch::async,
                             [&] { return receive_ranks(listener, "job", members, 20).size(); });
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
    REQUIRE(rank_0.get() == 2);
}

TEST_CASE("a rank that does not come is named") {
    const Descriptor listener = listen_at("127.0.0.1", 0);
    std::vector<Member> members = members_of(4, 0);
    const RendezvousEndpoint place{{"127.0.0.1"}, port_of(listener), "job"};
    auto rank_2 = std::async(std::launch::async, [&] { return join(place, 2, 4, 1.5); });
    REQUIRE_THROWS_WITH(receive_ranks(listener, "job", members, 1),
                        "rank 0 waited for rank 1, rank 3 at port " + std::to_string(place.port) +
                            " in vain: were all processes of the job started?");
    REQUIRE(rank_2.get().starts_with("rank 2 could not meet the others at 127.0.0.1:"));
}

TEST_CASE("a rank may come before rank 0 listens, and has several addresses to try") {
    Descriptor listener = listen_at("127.0.0.1", 0);
    const RendezvousEndpoint place{{"127.0.0.2", "127.0.0.1"}, port_of(listener), "job"};
    listener = Descriptor();  // the port is free again
    auto rank_1 = std::async(std::launch::async, [&] { return join(place, 1, 2, 10); });
    std::this_thread::sleep_for(100ms);
    listener = listen_at("127.0.0.1", place.port);
    std::vector<Member> members = members_of(2, 0);
    REQUIRE(receive_ranks(listener, "job", members, 10).size() == 2);
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
