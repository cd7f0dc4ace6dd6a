// What ranks that have not met find out about each other's nodes, and what they say.
#include "05_ranks/support/silent_nodes.hpp"
#include "05_ranks/coordinator/connection.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {
namespace {

// Nodes with a network of their own, and one that containers leave on each of them.
NodeReport node(int rank, const std::string& name, const std::string& address) {
    return {rank, name, "", {}, {{"eth0", address, 1100}, {"docker0", "172.17.0.1", 0}}};
}
const NodeReport a = node(0, "a", "10.0.0.1"), b = node(2, "b", "10.0.0.2");

}  // namespace

TEST_CASE("a report of a node is a line, whatever it has") {
    NodeReport full{12, "b", "rank 3 (process 9)", {1024, 40000}, {{"eth0", "10.0.0.2", 5}}};
    const NodeReport copy = report_of_line(line_of(full));
    REQUIRE(copy.rank == 12);
    REQUIRE(copy.node == "b");
    REQUIRE(copy.stopped == "rank 3 (process 9)");
    REQUIRE(copy.ports == full.ports);
    REQUIRE(copy.networks.size() == 1);
    REQUIRE(copy.networks[0].interface == "eth0");
    REQUIRE(copy.networks[0].address == "10.0.0.2");
    REQUIRE(copy.networks[0].sent == 5);
    const NodeReport empty = report_of_line(line_of({1, "c", "", {}, {}}));
    REQUIRE(empty.rank == 1);
    REQUIRE(empty.networks.empty());
    REQUIRE(empty.ports.empty());
    // 100 interfaces do not fit. Those that do are whole.
    for (int i = 0; i < 100; i++)
        full.networks.push_back({"veth" + std::to_string(i), "10.1.0." + std::to_string(i), 77});
    REQUIRE(line_of(full).size() <= 1000);
    REQUIRE(report_of_line(line_of(full)).networks.size() > 20);
    REQUIRE(report_of_line(line_of(full)).networks.back().sent == 77);
}

TEST_CASE("a process knows where it listens, and what its interfaces have sent") {
    const Descriptor listener = listen_at("127.0.0.1", 0);
    SentBytes before = sent_bytes();
    for (auto& [name, bytes] : before)
        bytes -= std::min<std::uint64_t>(bytes, 1);
    const NodeReport report = report_of_node(5, "", before);
    REQUIRE(report.rank == 5);
    REQUIRE(std::ranges::count(report.ports, port_of(listener)) == 1);
    for (const NodeReport::Network& each : report.networks) {
        REQUIRE(each.interface != "lo");
        REQUIRE(each.sent < 1'000'000);  // what it has sent in this moment
    }
}

TEST_CASE("the wrong network is the one on which two nodes have one address") {
    const std::string text = to_string({a, {b}, {}});
    REQUIRE(has(text, "All were started, but no answer came from b (10.0.0.2) by eth0/docker0."));
    REQUIRE(has(text,
                "\n    a: eth0 (10.0.0.1) has sent 1.07 KiB, docker0 (172.17.0.1) has sent 0 B\n"));
    REQUIRE(has(text, "\n    b: eth0 (10.0.0.2) has sent"));
    REQUIRE(has(text, "docker0 is the wrong network: a and b have the same address 172.17.0.1"));
    REQUIRE(has(text, "export OMPI_MCA_btl_tcp_if_include=eth0 MASTER_ADDR=10.0.0.1"));
    // Rank 0 alone reads MASTER_ADDR, and it is on another node.
    REQUIRE(!has(to_string({b, {node(3, "c", "10.0.0.3")}, {}}), "MASTER_ADDR"));
    // Containers that share all of a machine's networks are not on a wrong one.
    REQUIRE(!has(to_string({a, {node(1, "c", "10.0.0.1")}, {}}), "wrong network"));
}

TEST_CASE("a closed port is found, and named") {
    Descriptor listener = listen_at("127.0.0.1", 0);
    NodeReport other{1, "b", "", {port_of(listener)}, {{"eth1", "127.0.0.1", 0}}};
    const NodeReport own{0, "a", "", {}, {{"eth0", "10.0.0.1", 0}}};
    REQUIRE(silence_of(own, {line_of(own), line_of(other)}).closed.port == 0);
    REQUIRE(
        has(to_string(silence_of(own, {line_of(other)})), "If the nodes have several networks"));
    listener = Descriptor();
    const Silence silence = silence_of(own, {line_of(own), line_of(other), line_of(other)});
    REQUIRE(silence.others.size() == 1);
    REQUIRE(silence.closed.port == other.ports[0]);
    REQUIRE(has(to_string(silence),
                "a cannot connect to port " + std::to_string(other.ports[0]) +
                    " of b (127.0.0.1), where a rank listens: is there a firewall?"));
    // An address that this node has, too, tells nothing.
    REQUIRE(silence_of({0, "a", "", {}, other.networks}, {line_of(other)}).closed.port == 0);
}

TEST_CASE("a stopped rank of another node, many nodes, and nodes that say nothing") {
    NodeReport stops = b;
    stops.stopped = "rank 2 (process 77)";
    REQUIRE(to_string({a, {node(1, "c", "10.0.0.3"), stops}, {}}) ==
            "rank 2 (process 77) of b, which is stopped");
    std::vector<NodeReport> many;
    for (int i = 1; i < 63; i++)
        many.push_back(node(i, "h" + std::to_string(i), "10.0.1." + std::to_string(i)));
    REQUIRE(has(to_string({a, many, {}}),
                "from h1 (10.0.1.1), h2 (10.0.1.2), h3 (10.0.1.3) and 59 more by"));
    REQUIRE(has(to_string({a, {}, {}}),
                "no answer came from some of them by eth0/docker0. Meanwhile\n    a: "));
}

}  // namespace ddp::test
