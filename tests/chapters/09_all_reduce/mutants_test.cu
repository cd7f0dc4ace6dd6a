// The check that the other tests use can fail: it notices each typical mistake.
#include <atomic>

#include "tests/chapters/09_all_reduce/mutants.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr std::size_t most = 1009;

// Returns how many elements of this rank the check counts as wrong, over turns like those of the
// tests.
int wrong_elements(Peers& peers, const AllReduce<float>& run) {
    CollectiveCheck<float> check(peers, most);
    Stream stream;
    peers.rank().barrier();
    for (const std::size_t count : {std::size_t{5}, most})
        for (const ReduceOp op : all_ops)
            for (const bool in_place : {false, true})
                check.all_reduce(run, {count, op, in_place, 1, 2}, stream);
    peers.synchronize(stream);
    return check.wrong();
}

}  // namespace

TEST_CASE("every typical mistake is noticed, on every rank") {
    for (int ranks : {2, 3, 4}) {
        World world(thread_options(ranks));
        std::vector<Mutant> mutants;
        std::vector<std::atomic<int>> noticed(100);
        world.run([&](Rank& rank) {
            Peers peers(rank, 1 << 20);
            const std::vector<Mutant> all = all_mutants(peers, most);
            for (std::size_t i = 0; i < all.size(); i++)
                noticed[i] += wrong_elements(peers, all[i].run) > 0;
            if (rank.rank() == 0)
                mutants = all;
        });
        REQUIRE(mutants.size() == 13);
        for (std::size_t i = 0; i < mutants.size(); i++) {
            CAPTURE(ranks, mutants[i].mistake);
            REQUIRE(noticed[i] == (ranks >= mutants[i].least_ranks ? ranks : 0));
        }
    }
}

}  // namespace ddp::test
