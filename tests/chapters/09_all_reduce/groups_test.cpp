// Communicators of some of a job's ranks, on one node: their calls, and what messages call a rank.
#include <atomic>

#include "tests/chapters/09_all_reduce/all_calls.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Returns the group of `rank` among groups that have every rank once.
Group group_of(const std::vector<Group>& groups, const Rank& rank) {
    for (const Group& group : groups)
        if (group.index_of(rank.rank()) >= 0)
            return group;
    return Group({rank.rank()});
}

// Returns the first cause of failure of five ranks, each with a communicator over its group.
std::string failure_in_groups(const std::vector<Group>& groups,
                              const std::function<void(Communicator&, Stream&)>& work,
                              double timeout_s = 30) {
    World world(thread_options(5, timeout_s));
    return failure_of(world, [&](Rank& rank) {
        const auto communicator =
            make_native_communicator(rank, 1 << 20, {.group = group_of(groups, rank)});
        Stream stream;
        work(*communicator, stream);
        communicator->synchronize(stream);
    });
}

}  // namespace

TEST_CASE("all calls in groups: one of every second rank, one in an order of its own") {
    const std::vector<std::size_t> counts{0, 1, 3, 130};
    std::atomic<std::size_t> wrong = 0;
    World world(thread_options(5));
    world.run([&](Rank& rank) {
        const Group group = group_of({Group({0, 2, 4}), Group({3, 1})}, rank);
        const auto communicator = make_native_communicator(
            rank, arena_bytes_for(group.size(), counts, 5003), {.group = group});
        wrong += communicator->world_size() != group.size();
        wrong += group.rank(communicator->index()) != rank.rank();
        for (const CallResult& result :
             make_all_calls(*communicator, counts, 5003, order_on_one_node(group.size())))
            wrong += result.wrong;
    });
    REQUIRE(wrong == 0);
}

TEST_CASE("messages name the numbers that ranks have in the job, not in their group") {
    const std::vector<Group> groups{Group({4, 1, 3})};
    const std::string differs =
        failure_in_groups(groups, [](Communicator& communicator, Stream& stream) {
            if (communicator.world_size() == 1)
                return;
            ArenaBuffer<float> data = communicator.allocate<float>(10);
            const std::size_t count = communicator.index() == 2 ? 9 : 10;  // rank 3
            communicator.broadcast(data.data(), count, 0, stream, "x");
        });
    CAPTURE(differs);
    REQUIRE(has(differs, "rank 3"));
    REQUIRE(has(differs, "broadcast of 9 float from rank 4 (\"x\")"));
    REQUIRE(has(differs, "broadcast of 10 float from rank 4 (\"x\")"));
    const std::string absent = failure_in_groups(
        groups,
        [](Communicator& communicator, Stream& stream) {
            ArenaBuffer<float> data = communicator.allocate<float>(10);
            if (communicator.world_size() > 1 && communicator.index() == 1)
                communicator.receive(data.data(), 7, 0, stream);
        },
        1);
    REQUIRE(has(absent,
                "rank 1: waited 1.0 s in operation 1, receive of 7 float from rank 4; rank 4 has "
                "begun no operation"));
}

TEST_CASE("groups that make no sense are refused") {
    const auto nothing = [](Communicator&, Stream&) {};
    REQUIRE_THROWS_WITH(Group({}), "a group needs a rank");
    REQUIRE_THROWS_WITH(Group({1, 2, 1}), "rank 1 is in a group twice");
    World world(thread_options(2));
    const auto failure = [&](const std::function<Group(int)>& group) {
        return failure_of(world, [&](Rank& rank) {
            make_native_communicator(rank, 1 << 10, {.group = group(rank.rank())});
        });
    };
    REQUIRE(
        failure([](int) { return Group({0}); }) ==
        "rank 1: rank 1 is not in the group that it gives: a rank that is in none gives itself");
    REQUIRE(has(failure([](int) {
                    return Group({0, 1, 2});
                }),
                "gives a group of ranks 0 1 2: the ranks are 0 to 1"));
    const std::string other = failure([](int r) { return r == 0 ? Group({0, 1}) : Group({1}); });
    REQUIRE(
        other ==
        "rank 0: rank 0 gives a group of ranks 0 1, but rank 1 one of ranks 1: all members of a "
        "group give the same");
    REQUIRE(failure_in_groups({}, nothing) == "");
}

}  // namespace ddp::test
