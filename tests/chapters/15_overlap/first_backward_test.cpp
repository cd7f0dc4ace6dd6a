// The first step on a GPU, which the CPU plays: no gradient is sent before all ranks have computed
// theirs.
#include <atomic>

#include "tests/chapters/15_overlap/replica.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

TEST_CASE("the first step sends when every backward is over, the next ones overlap") {
    constexpr int ranks = 3, steps = 3;
    World world(thread_options(ranks));
    std::atomic<int> over[steps] = {};  // ranks whose backward has come to its last gradient
    std::atomic<int> early[steps] = {};
    world.run([&](Rank& rank) {
        Replica replica(rank, make_branches, {.bucket_cap_bytes = 0});
        const std::size_t parameters = replica.model->parameters().size();
        int step = 0;
        replica.ddp.set_bucket_hook([&](Communicator& communicator, const Tensor& bucket,
                                        Stream& stream, const std::string& name) {
            early[step] += over[step] < ranks;
            average_bucket(communicator, bucket, stream, name);
        });
        for (; step < steps; step++) {
            std::size_t computed = 0;
            const Variable loss = replica.forward();
            replica.ddp.backward(loss, [&](Parameter&) { over[step] += ++computed == parameters; });
            replica.clear();
        }
        replica.synchronize();
    });
    REQUIRE(early[0] == 0);
    REQUIRE(early[2] > 0);  // the buckets are rebuilt in the second step
}

}  // namespace
}  // namespace ddp::test
