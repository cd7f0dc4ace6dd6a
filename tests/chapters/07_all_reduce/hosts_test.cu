// Communicators of ranks on several hosts, which are threads of one process here: what all calls
// give, what goes on at the same time, and how failures are explained.
#include <atomic>
#include <set>

#include "07_all_reduce/hosts_communicator.hpp"
#include "tests/chapters/07_all_reduce/all_calls.hpp"
#include "tests/chapters/07_all_reduce/thread_wire.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Hosts = std::vector<std::string>;

// Where the ranks are: one on each host, two on each, unevenly, and in an order in which a host is
// left and entered again.
const std::vector<Hosts>& all_hosts() {
    static const std::vector<Hosts> all{
        {"a", "b"},           {"a", "b", "c"},      {"a", "b", "c", "d"}, {"a", "a", "b", "b"},
        {"a", "b", "b", "b"}, {"a", "b", "a", "b"}, {"a", "a", "b"},      {"a", "b", "b", "c", "a"},
    };
    return all;
}

std::string text_of(const Hosts& hosts) {
    std::string text;
    for (const std::string& host : hosts)
        text += host;
    return text;
}

// Every rank's results, by call: "wrong" elements of all ranks, and all their bits.
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

AllResults results_on(const Hosts& hosts, const std::vector<std::size_t>& counts) {
    ThreadWires wires;
    AllResults results;
    const std::string failure = failure_on_hosts(hosts, [&](Rank& rank) {
        const auto communicator = make_hosts_communicator(
            rank, pool_bytes_for(rank.world_size(), counts.back()), wires.of(rank.rank()));
        const AllResults all = gathered(rank, make_all_calls(*communicator, counts));
        if (rank.rank() == 0)
            results = all;
    });
    REQUIRE(failure == "");
    return results;
}

}  // namespace

TEST_CASE("all calls between hosts, in every type, with counts that do not divide") {
    for (const Hosts& hosts : all_hosts()) {
        const AllResults results = results_on(hosts, {0, 1, 2, 3, 5, 129, 997, 5003});
        CAPTURE(text_of(hosts));
        REQUIRE(results.wrong == 0);
    }
}

TEST_CASE("a rank that fails in the middle releases the others, and nothing is left of it") {
    for (int turn = 0; turn < 20; turn++) {
        ThreadWires wires;
        const std::string failure = failure_on_hosts({"a", "a", "b", "c"}, [&](Rank& rank) {
            const auto communicator = make_hosts_communicator(rank, 8 << 20, wires.of(rank.rank()));
            PoolBuffer<float> data = communicator->allocate<float>(1 << 20);
            Stream stream;
            for (int i = 0; i < 20; i++) {
                if (rank.rank() == turn % 4 && i == turn)
                    throw std::runtime_error("broken on purpose");
                communicator->all_reduce(data.data(), data.data(), data.size(), ReduceOp::sum,
                                         stream);
                if (turn % 2 == 0)
                    communicator->synchronize(stream);
            }
            communicator->synchronize(stream);
        });
        REQUIRE(failure == "rank " + std::to_string(turn % 4) + ": broken on purpose");
    }
}

}  // namespace ddp::test
