// Communicators of ranks on several nodes, which are threads of one process here: the results of
// all calls, calls at the same time, and the messages of failures.
#include <atomic>
#include <ctime>
#include <set>

#include "06_messages/peers.hpp"
#include "10_nodes/communicator/nodes_communicator.hpp"
#include "10_nodes/make_communicator.hpp"
#include "tests/chapters/09_all_reduce/all_calls.hpp"
#include "tests/chapters/10_nodes/thread_transport.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Nodes = std::vector<std::string>;

// Returns the node of each rank: one rank on each node, two on each, unevenly, and in orders that
// return to a node.
const std::vector<Nodes>& all_nodes() {
    static const std::vector<Nodes> all{
        {"a", "b"},
        {"a", "b", "c"},
        {"a", "b", "c", "d"},
        {"a", "a", "b", "b"},
        {"a", "b", "b", "b"},
        {"a", "b", "a", "b"},
        {"a", "a", "b"},
        {"a", "b", "b", "c", "a"},
        {"a", "b", "c", "b", "c", "a"},
        {"a", "a", "a", "b", "b", "b"},
    };
    return all;
}

std::string to_string(const Nodes& nodes) {
    std::string text;
    for (const std::string& node : nodes)
        text += node;
    return text;
}

// The results of all ranks: the number of wrong elements, and the bits of each call.
struct AllResults {
    std::size_t wrong = 0;
    std::vector<std::string> bits;  // "call: bits of each rank"
};

AllResults gathered(Rank& rank, const std::vector<CallResult>& results) {
    AllResults all;
    for (const CallResult& result : results) {
        std::string bits = result.call + ":";
        for (const std::string& each : rank.all_gather(result.bits))
            bits += " " + each;
        for (const std::string& each : rank.all_gather(std::to_string(result.wrong)))
            all.wrong += std::stoull(each);
        all.bits.push_back(bits);
    }
    return all;
}

const std::vector<std::size_t> counts{0, 1, 2, 3, 5, 129, 997};

AllResults results_of(Communicator& communicator, std::size_t large, const OrderOfSums& order) {
    return gathered(communicator.rank(), make_all_calls(communicator, counts, large, order));
}

// Returns the order that the ranks of `nodes` are to sum in: the ring goes node by node, and on two
// levels nodes of one size sum first.
OrderOfSums order_of(const Nodes& nodes, int levels) {
    OrderOfSums order;
    std::set<std::ptrdiff_t> sizes;
    for (std::size_t i = 0; i < nodes.size(); i++) {
        if (std::ranges::find(nodes, nodes[i]) != nodes.begin() + static_cast<std::ptrdiff_t>(i))
            continue;
        for (std::size_t j = i; j < nodes.size(); j++)
            if (nodes[j] == nodes[i])
                order.ring.push_back(static_cast<int>(j));
        sizes.insert(std::ranges::count(nodes, nodes[i]));
    }
    if (levels == 2 && sizes.size() == 1)
        order.local = static_cast<int>(*sizes.begin());
    return order;
}

using MakeTransport = std::function<std::unique_ptr<Transport>(Rank&)>;

AllResults results_on(const Nodes& nodes, std::size_t large, int levels,
                      const MakeTransport& make_transport) {
    AllResults results;
    const std::string failure = failure_of(job_on(nodes), [&](Rank& rank) {
        const auto communicator =
            make_nodes_communicator(rank, arena_bytes_for(rank.world_size(), counts, large),
                                    make_transport(rank), {.order = {.levels = levels}});
        const AllResults all = results_of(*communicator, large, order_of(nodes, levels));
        if (rank.rank() == 0)
            results = all;
    });
    REQUIRE(failure == "");
    return results;
}

AllResults results_on(const Nodes& nodes, std::size_t large, int levels) {
    ThreadTransports transports;
    return results_on(nodes, large, levels, [&](Rank& rank) { return transports.of(rank.rank()); });
}

// Returns the bits of four ranks on one node, which sum as they are `asked` to.
std::vector<std::string> bits_on_one_node(const AllReduceOrder& asked, std::size_t large,
                                          const OrderOfSums& order) {
    World world(thread_options(4));
    std::vector<std::string> bits;
    world.run([&](Rank& rank) {
        const auto communicator = make_communicator(
            "native", rank, arena_bytes_for(rank.world_size(), counts, large), {.order = asked});
        const AllResults all = results_of(*communicator, large, order);
        REQUIRE(all.wrong == 0);
        if (rank.rank() == 0)
            bits = all.bits;
    });
    return bits;
}

}  // namespace

TEST_CASE("all calls between nodes, in every type, with counts that do not divide",
          "[exhaustive]") {
    for (const Nodes& nodes : all_nodes())
        for (const int levels : {1, 2}) {
            if (levels == 2 && order_of(nodes, 2).local == 1)
                continue;  // one ring all the same
            const AllResults results = results_on(nodes, 20'011, levels);
            CAPTURE(to_string(nodes), levels);
            REQUIRE(results.wrong == 0);
        }
}

TEST_CASE("the same bits on one node and on several") {
    constexpr std::size_t large = 300'007;  // two rounds of slices of each chunk
    const std::vector<std::string> on_one = bits_on_one_node({}, large, order_on_one_node(4));
    REQUIRE(results_on({"a", "b", "c", "d"}, large, 2).bits == on_one);
    REQUIRE(results_on({"a", "b", "b", "b"}, large, 2).bits == on_one);
    REQUIRE(results_on({"a", "a", "b", "b"}, large, 1).bits == on_one);
}

TEST_CASE("the same results through sockets") {
    constexpr std::size_t large = 40'007;
    for (const Nodes& nodes : {Nodes{"a", "b", "b", "b"}, Nodes{"a", "a", "b", "b"}}) {
        const AllResults through_sockets = results_on(nodes, large, 2, make_socket_transport);
        REQUIRE(through_sockets.wrong == 0);
        REQUIRE(through_sockets.bits == results_on(nodes, large, 2).bits);
    }
}

TEST_CASE("a shape on one node gives the bits of as many nodes") {
    constexpr std::size_t large = 300'007;
    AllReduceOrder asked{.levels = 2, .shape = NodeShape{2, 2}};
    const Nodes nodes{"a", "a", "b", "b"};
    const std::vector<std::string> shaped = bits_on_one_node(asked, large, order_of(nodes, 2));
    REQUIRE(results_on(nodes, large, 2).bits == shaped);
    REQUIRE(results_on(nodes, large, 1).bits != shaped);
    asked.levels = 1;
    REQUIRE(results_on(nodes, large, 1).bits == bits_on_one_node(asked, large, order_of(nodes, 1)));
}

namespace {

constexpr std::size_t small_arena = 1 << 20;

// Calls work() on every rank, each with a communicator, and returns the first cause of failure or
// "".
std::string failure_with(
    const Nodes& nodes, const std::function<void(Communicator& communicator, Stream& stream)>& work,
    double timeout_s = 30) {
    ThreadTransports transports;
    return failure_on_nodes(
        nodes,
        [&](Rank& rank) {
            const auto communicator =
                make_nodes_communicator(rank, small_arena, transports.of(rank.rank()));
            Stream stream;
            work(*communicator, stream);
            communicator->synchronize(stream);
        },
        timeout_s);
}

std::vector<float> iota(std::size_t size, float begin) {
    std::vector<float> values(size);
    for (std::size_t i = 0; i < size; i++)
        values[i] = begin + static_cast<float>(i);
    return values;
}

}  // namespace

TEST_CASE("a short array sends a record, and a message in each step of its ring") {
    // Returns the messages of an all-reduce, by all ranks.
    const auto messages = [](const Nodes& nodes) {
        constexpr std::size_t count = 12 * 32;
        ThreadTransports transports;
        REQUIRE(failure_on_nodes(nodes, [&](Rank& rank) {
                    const auto communicator =
                        make_nodes_communicator(rank, small_arena, transports.of(rank.rank()));
                    ArenaBuffer<float> data = communicator->allocate<float>(count);
                    data.copy_from(std::vector<float>(count, 1));
                    Stream stream;
                    communicator->all_reduce(data.data(), data.data(), count, ReduceOp::sum,
                                             stream);
                    communicator->synchronize(stream);
                }) == "");
        return transports.messages();
    };
    REQUIRE(messages({"a", "b"}) == 2 * (1 + 2));
    REQUIRE(messages({"a", "b", "c", "d"}) == 4 * (1 + 6));
    REQUIRE(messages({"a", "a", "b", "b", "c", "c"}) == 6 * (1 + 4));  // on two levels
}

TEST_CASE("a rank that waits long for another node leaves the cores to others") {
    const std::clock_t begin = std::clock();
    const std::string text = failure_with(
        {"a", "b"},
        [](Communicator& communicator, Stream& stream) {
            ArenaBuffer<float> data = communicator.allocate<float>(10);
            if (communicator.rank().rank() == 0)
                communicator.all_reduce(data.data(), data.data(), 10, ReduceOp::sum, stream);
        },
        1);
    REQUIRE(has(text, "waited 1.0 s in operation 1, all_reduce sum of 10 float"));
    // Of a second in which a kernel and two proxies wait.
    REQUIRE(std::clock() - begin < CLOCKS_PER_SEC / 2);
}

TEST_CASE("communicators of some ranks, on one node and across nodes") {
    // Two groups across nodes, one of them in an order of its own, and a rank that is alone.
    const Nodes nodes{"a", "a", "b", "b", "a", "b", "a"};
    const std::vector<Group> groups{Group({5, 0, 3, 4}), Group({1, 2}), Group({6})};
    ThreadTransports transports;
    std::atomic<std::size_t> wrong = 0;
    const std::string failure = failure_on_nodes(nodes, [&](Rank& rank) {
        const Group& group = *std::ranges::find_if(
            groups, [&](const Group& each) { return each.index_of(rank.rank()) >= 0; });
        Nodes theirs;
        for (const int member : group.ranks())
            theirs.push_back(nodes[static_cast<std::size_t>(member)]);
        const auto communicator =
            make_nodes_communicator(rank, arena_bytes_for(group.size(), counts, 20'011),
                                    transports.of(rank.rank()), {.group = group});
        for (const CallResult& result :
             make_all_calls(*communicator, counts, 20'011, order_of(theirs, 2)))
            wrong += result.wrong;
    });
    REQUIRE(failure == "");
    REQUIRE(wrong == 0);
}

TEST_CASE("sends, receives and all-reduces at the same time, of several communicators") {
    ThreadTransports transports, other_transports;
    std::atomic<int> wrong = 0;
    const std::string failure = failure_on_nodes({"a", "b", "b", "c"}, [&](Rank& rank) {
        const auto one = make_nodes_communicator(rank, small_arena, transports.of(rank.rank()));
        const auto two =
            make_nodes_communicator(rank, small_arena, other_transports.of(rank.rank()));
        constexpr std::size_t count = 50'001;
        ArenaBuffer<float> a = one->allocate<float>(count), b = two->allocate<float>(count);
        ArenaBuffer<float> to = one->allocate<float>(count), from = one->allocate<float>(count);
        const int me = rank.rank(), opposite = me ^ 1;
        a.copy_from(std::vector<float>(count, 1));
        b.copy_from(std::vector<float>(count, 2));
        to.copy_from(iota(count, static_cast<float>(me)));
        Stream reducing, other_reducing, sending, receiving;
        for (int i = 0; i < 3; i++) {
            one->all_reduce(a.data(), a.data(), count, ReduceOp::sum, reducing);
            one->send(to.data(), count, opposite, sending);
            two->all_reduce(b.data(), b.data(), count, ReduceOp::sum, other_reducing);
            one->receive(from.data(), count, opposite, receiving);
        }
        for (Stream* stream : {&reducing, &sending, &receiving})
            one->synchronize(*stream);
        two->synchronize(other_reducing);
        wrong += a.to_host_now() != std::vector<float>(count, 64);
        wrong += b.to_host_now() != std::vector<float>(count, 128);
        wrong += from.to_host_now() != iota(count, static_cast<float>(opposite));
    });
    REQUIRE(failure == "");
    REQUIRE(wrong == 0);
}

TEST_CASE("a rank may end after its last call: its remaining data is still sent") {
    std::atomic<int> wrong = 0;
    const std::string failure =
        failure_with({"a", "b", "c"}, [&](Communicator& communicator, Stream& stream) {
            ArenaBuffer<float> data = communicator.allocate<float>(100'003);
            const bool is_root = communicator.rank().rank() == 0;
            data.copy_from(is_root ? iota(data.size(), 5) : std::vector<float>(data.size()));
            communicator.broadcast(data.data(), data.size(), 0, stream);
            communicator.synchronize(stream);
            wrong += data.to_host_now() != iota(data.size(), 5);
        });
    REQUIRE(failure == "");
    REQUIRE(wrong == 0);
}

TEST_CASE("ranks of different nodes that make different calls are diagnosed") {
    const auto all_reduce = [](Communicator& communicator, std::size_t count, ReduceOp op,
                               Stream& stream, const std::string& name) {
        ArenaBuffer<float> data = communicator.allocate<float>(5000);
        communicator.all_reduce(data.data(), data.data(), count, op, stream, name);
        communicator.synchronize(stream);
    };
    const auto failure = [&](const Nodes& nodes, std::size_t count, ReduceOp op,
                             const std::string& name) {
        return failure_with(nodes, [&](Communicator& communicator, Stream& stream) {
            all_reduce(communicator, 7, ReduceOp::sum, stream, "first");
            if (communicator.rank().rank() == 2)
                all_reduce(communicator, count, op, stream, name);
            else
                all_reduce(communicator, 10, ReduceOp::sum, stream, "weights");
        });
    };
    const std::string ours = "operation 2, all_reduce sum of 10 float (\"weights\")";
    const std::string rule = ": all ranks must do the same, in the same order";
    const Nodes one_ring{"a", "b", "b"}, two_levels{"a", "a", "b", "b"}, one_each{"a", "b", "c"};
    for (const Nodes& nodes : {one_ring, two_levels, one_each})
        for (const auto& [text, theirs] : {
                 std::pair(failure(nodes, 11, ReduceOp::sum, "weights"),
                           "sum of 11 float (\"weights\")"),
                 std::pair(failure(nodes, 5000, ReduceOp::sum, "weights"),
                           "sum of 5000 float (\"weights\")"),
                 std::pair(failure(nodes, 10, ReduceOp::average, "weights"),
                           "average of 10 float (\"weights\")"),
                 std::pair(failure(nodes, 10, ReduceOp::sum, "bias"), "sum of 10 float (\"bias\")"),
             }) {
            CAPTURE(to_string(nodes), text);
            REQUIRE(has(text, ours));
            REQUIRE(has(text, std::string("operation 2, all_reduce ") + theirs));
            REQUIRE(has(text, rule));
        }
}

TEST_CASE("two roots are diagnosed, although no data would go between them") {
    const std::string text =
        failure_with({"a", "b"}, [](Communicator& communicator, Stream& stream) {
            ArenaBuffer<float> data = communicator.allocate<float>(10);
            communicator.broadcast(data.data(), 10, communicator.rank().rank(), stream);
        });
    CAPTURE(text);
    REQUIRE(has(text, "broadcast of 10 float from rank 0"));
    REQUIRE(has(text, "broadcast of 10 float from rank 1"));
    REQUIRE(has(text, "all ranks must do the same"));
}

TEST_CASE("an absent rank of another node is named by its neighbour") {
    const auto wait_for_1 = [](int rounds) {
        return failure_with(
            {"a", "b", "c", "d"},
            [=](Communicator& communicator, Stream& stream) {
                ArenaBuffer<float> data = communicator.allocate<float>(100);
                const bool is_absent = communicator.rank().rank() == 1;
                for (int i = 0; i < rounds - is_absent; i++)
                    communicator.all_reduce(data.data(), data.data(), 100, ReduceOp::sum, stream);
            },
            3);
    };
    REQUIRE(wait_for_1(1) ==
            "rank 2: waited 3.0 s in operation 1, all_reduce sum of 100 float; rank 1 does not "
            "answer");
    REQUIRE(wait_for_1(2) ==
            "rank 2: waited 3.0 s in operation 2, all_reduce sum of 100 float; rank 1 was last "
            "heard of in operation 1, all_reduce sum of 100 float");
}

TEST_CASE("on two levels an absent rank is named by a rank of its node or of its rail") {
    const std::string text = failure_with(
        {"a", "a", "b", "b"},
        [](Communicator& communicator, Stream& stream) {
            ArenaBuffer<float> data = communicator.allocate<float>(100);
            const int calls = communicator.rank().rank() == 1 ? 1 : 2;
            for (int i = 0; i < calls; i++)
                communicator.all_reduce(data.data(), data.data(), 100, ReduceOp::sum, stream);
        },
        2);
    CAPTURE(text);
    REQUIRE((has(text, "rank 0: ") || has(text, "rank 3: ")));
    REQUIRE(has(text, "waited 2.0 s in operation 2, all_reduce sum of 100 float; rank 1 "));
    REQUIRE(has(text, " operation 1, all_reduce sum of 100 float"));
}

TEST_CASE("sends and receives that do not match, or are missing") {
    const auto failure = [](std::size_t sent, std::size_t received, double timeout_s) {
        return failure_with(
            {"a", "b"},
            [=](Communicator& communicator, Stream& stream) {
                ArenaBuffer<float> data = communicator.allocate<float>(100);
                if (communicator.rank().rank() == 0)
                    communicator.send(data.data(), sent, 1, stream, "it");
                else if (received > 0)
                    communicator.receive(data.data(), received, 0, stream, "it");
                communicator.synchronize(stream);
            },
            timeout_s);
    };
    REQUIRE(failure(10, 10, 30) == "");
    REQUIRE(failure(10, 11, 30) ==
            "rank 1: in operation 1, receive of 11 float from rank 0 (\"it\"), but rank 0 is in "
            "operation 1, send of 10 float to rank 1 (\"it\"): both must say the same count and "
            "type");
    REQUIRE(failure(10, 0, 1) ==
            "rank 0: waited 1.0 s in operation 1, send of 10 float to rank 1 (\"it\"); rank 1 "
            "does not answer");
}

TEST_CASE("a transport that fails ends the run") {
    ThreadTransports transports;
    const std::string text = failure_on_nodes({"a", "a", "b", "b"}, [&](Rank& rank) {
        const auto communicator =
            make_nodes_communicator(rank, small_arena, transports.of(rank.rank()));
        ArenaBuffer<float> data = communicator->allocate<float>(100'000);
        Stream stream;
        for (int i = 0; i < 1000; i++) {
            communicator->all_reduce(data.data(), data.data(), data.size(), ReduceOp::sum, stream);
            if (i == 5 && rank.rank() == 1)
                transports.cut();
            communicator->synchronize(stream);
        }
    });
    REQUIRE(has(text, ": the connection is cut"));
}

TEST_CASE("a simulated link between nodes is refused") {
    Job job;
    job.members = {{"a", 0, 0, 1}, {"b", 0, 0, 1}};
    job.link = LinkSpeed{1e9, 1e-5};
    CoordinatorServer coordinator(job, Connections(2));
    Rank rank(0, 1, job, coordinator, coordinator.events(0));
    REQUIRE_THROWS_WITH(make_nodes_communicator(rank, small_arena, nullptr),
                        "--link simulates a link between the ranks of one node, and these are on "
                        "several, with a real one: leave it out.");
}

TEST_CASE("more ranks than a communicator can have are refused") {
    const Job job = job_on(Nodes(1025, "a"));
    CoordinatorServer coordinator(job, Connections(job.members.size()));
    Rank rank(0, 1, job, coordinator, coordinator.events(0));
    REQUIRE_THROWS_WITH(
        make_nodes_communicator(rank, small_arena, nullptr),
        "1025 ranks are more than the 1024 that one communicator can have: start fewer.");
}

TEST_CASE("kernels that reach the memory of one node only refuse ranks of several") {
    const std::string failure =
        failure_of(job_on({"a", "a", "b"}), [](Rank& rank) { Peers peers(rank, 1 << 16); });
    CAPTURE(failure);
    const bool is_of_2 =
        failure.ends_with("rank 2 is on another node (b), where kernels cannot reach");
    const bool is_by_2 =
        failure.ends_with("rank 0 is on another node (a), where kernels cannot reach");
    REQUIRE((is_of_2 || is_by_2));
}

TEST_CASE("a communicator that does not exist is refused in one sentence") {
    World world(thread_options(1));
    world.run([](Rank& rank) {
        REQUIRE_THROWS_WITH(make_communicator("gloo", rank, 100),
                            "There is no communicator 'gloo'; there are native, mpi and nccl.");
    });
}

TEST_CASE("a rank that fails in the middle releases the others") {
    for (int turn = 0; turn < 16; turn++) {
        const Nodes nodes =
            turn < 8 ? Nodes{"a", "a", "b", "c"} : Nodes{"a", "a", "b", "b"};  // two levels
        const std::string failure =
            failure_with(nodes, [&](Communicator& communicator, Stream& stream) {
                ArenaBuffer<float> data = communicator.allocate<float>(200'000);
                for (int i = 0; i < 10; i++) {
                    if (communicator.rank().rank() == turn % 4 && i == turn % 8)
                        throw std::runtime_error("broken on purpose");
                    communicator.all_reduce(data.data(), data.data(), data.size(), ReduceOp::sum,
                                            stream);
                    if (turn % 2 == 0)
                        communicator.synchronize(stream);
                }
                communicator.synchronize(stream);
            });
        REQUIRE(failure == "rank " + std::to_string(turn % 4) + ": broken on purpose");
    }
}

}  // namespace ddp::test
