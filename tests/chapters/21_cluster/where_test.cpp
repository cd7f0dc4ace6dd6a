// Where the ranks are: cores, the core that two ranks share, and the network that was used.
#include <fstream>

#include "tests/support/catch.hpp"
#include "tests/support/text.hpp"
#include "tools/cluster/where.hpp"

namespace ddp::test {
namespace {

RankPlace place(const std::string& node, const std::vector<int>& cores,
                const std::string& machine = "m", int cores_of_machine = 8) {
    return {node, machine, cores, cores_of_machine, "0: GPU"};
}

// 1 MiB had to leave node a, whose name leads to eth0.
NodeNetwork network(std::uint64_t sent, const Traffic& most) {
    return {"a", "10.0.0.7", "eth0", sent, most, 1 << 20};
}

}  // namespace

TEST_CASE("where: cores as people write them") {
    REQUIRE(text_of_cores({0, 1, 2, 3, 8}) == "0-3,8");
    REQUIRE(text_of_cores({5}) == "5");
    REQUIRE(text_of_cores({1, 3, 4}) == "1,3-4");
    REQUIRE(text_of_cores({}) == "not known");
}

TEST_CASE("where: this process's cores are those that the system tells") {
    const RankPlace mine = place_of_process();
    std::string allowed;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("Cpus_allowed_list:"))
            allowed = words_of(line).at(1);
    REQUIRE(text_of_cores(mine.cores) == allowed);
    REQUIRE(mine.cores_of_machine >= static_cast<int>(mine.cores.size()));
    REQUIRE(mine.machine.size() == 36);  // a UUID
}

TEST_CASE("where: two ranks bound to one core are an error that names both") {
    const std::string said = shared_core(
        {place("a", {0}), place("a", {1}), place("b", {1}, "n"), place("a", {2}), place("a", {1})});
    REQUIRE(has(said, "ranks 1 and 4 are both bound to core 1 of a, which has 8"));
    REQUIRE(has(said, "mpirun --bind-to none"));
    // Two nodes that are namespaces of one machine have the same cores.
    REQUIRE(has(shared_core({place("a", {3}), place("b", {3})}),
                "ranks 0 and 1 are both bound to core 3 of a and b, one machine"));
}

TEST_CASE("where: ranks that share cores without being bound to one are fine") {
    REQUIRE(shared_core({place("a", {0}), place("a", {1})}).empty());
    REQUIRE(shared_core({place("a", {0, 1}), place("a", {0, 1}), place("a", {0, 1})}).empty());
    REQUIRE(shared_core({place("a", {0}), place("a", {0, 1})}).empty());
    REQUIRE(shared_core({place("a", {0}, "m"), place("b", {0}, "n")}).empty());
    REQUIRE(shared_core({place("a", {0}, "m", 1), place("a", {0}, "m", 1)}).empty());
    REQUIRE(shared_core({place("a", {}), place("a", {})}).empty());  // the system does not tell
}

TEST_CASE("where: bytes on another network than the one that the node's name leads to") {
    REQUIRE(wrong_network(network(1 << 20, {"eth0", 1 << 20})).empty());
    // A bond counts the bytes of the interfaces in it once more.
    REQUIRE(wrong_network(network(1 << 20, {"bond0", 3 << 20})).empty());
    const std::string wrong = wrong_network(network(3000, {"docker0", 1 << 20}));
    REQUIRE(has(wrong, "1 MiB have left a by docker0, and its name leads to eth0"));
    REQUIRE(has(wrong, "mpirun -x MASTER_ADDR="));
    REQUIRE(has(wrong_network(network(3000, {"eth0", 3000})), "No interface of a has sent"));
}

TEST_CASE("where: a node's name that leads nowhere") {
    NodeNetwork unknown = network(0, {"eth1", 1 << 20});
    unknown.interface = "";
    REQUIRE(has(wrong_network(unknown), "by eth1, and its name leads to 10.0.0.7, which none"));
    unknown.address = "";
    REQUIRE(has(wrong_network(unknown), "by eth1, and the other nodes do not know the name a"));
}

}  // namespace ddp::test
