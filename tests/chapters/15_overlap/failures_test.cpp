// What goes wrong in a step is reported soon, in a sentence that names it, and the next run works.
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "03_network/cross_entropy.hpp"
#include "common/report/bench.hpp"
#include "tests/chapters/15_overlap/replica.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr double timeout_s = 60;

// Returns the first cause. Requires that it was reported long before the time-out.
std::string prompt_failure(World& world, const std::function<void(Rank&)>& work) {
    const Stopwatch watch;
    const std::string failure = failure_of(world, work);
    return watch.seconds() < timeout_s / 2 ? failure : "too late: " + failure;
}

// What the others throw is not this.
std::string error_of(Replica& replica, const std::function<void()>& work) {
    const std::string error = message_of(work);
    replica.synchronize();
    return error;
}

}  // namespace

TEST_CASE("failures: parameters without a gradient are named, and the next run works") {
    World world(thread_options(3, timeout_s));
    const auto learn = [&](int victim, const DdpOptions& options) {
        return prompt_failure(world, [&, victim](Rank& rank) {
            Replica replica(rank, make_branches, options);
            for (int step = 0; step < 4; step++) {
                dynamic_cast<Branches&>(*replica.model).leaves_out_b =
                    rank.rank() == victim && step == 2;
                replica.step();
            }
            replica.synchronize();
        });
    };
    for (const bool overlap : {true, false})
        for (const int victim : {0, 2}) {
            const DdpOptions options{.bucket_cap_bytes = 0, .overlap = overlap};
            CAPTURE(overlap, victim);
            REQUIRE(learn(victim, options) ==
                    "rank " + std::to_string(victim) +
                        ": backward has ended, and these parameters got no gradient: b.weight, "
                        "b.bias; the loss must depend on every parameter, or the others wait for "
                        "ever");
            REQUIRE(learn(-1, options) == "");
        }
}

// The steps read no new data, so nothing but DDP itself bounds how far a node runs ahead of its
// device. Without a bound rank 0 would fill the queue of the stream that computes, and the launch
// that finds it full would keep out rank 1, for which rank 0's bucket waits.
TEST_CASE("a rank that pauses does not stop the others within a launch") {
    World world(thread_options(2, 5));
    std::atomic<int> steps = 0;  // of rank 0
    REQUIRE(failure_of(world, [&](Rank& rank) {
                Replica replica(rank, make_branches);
                const Batch batch = batch_of(replica.device, {0, 1});
                const auto step = [&] {
                    replica.ddp.backward(cross_entropy(
                        replica.ddp.forward(replica.tape.constant(batch.images)), batch.labels));
                    replica.clear();
                };
                step();
                step();  // the second one plans the buckets again, for which the nodes meet
                replica.synchronize();
                for (int before = -1; rank.rank() == 1 && before != steps;) {
                    before = steps;
                    std::this_thread::sleep_for(std::chrono::milliseconds(500));
                }
                for (int i = 0; i < 100; i++) {
                    step();
                    steps += rank.rank() == 0;
                }
                replica.synchronize();
            }) == "");
}

TEST_CASE("failures: a backward without a forward of its own is refused") {
    World world(thread_options(2, timeout_s));
    std::vector<std::string> errors;
    world.run([&](Rank& rank) {
        Replica replica(rank, make_small_mlp);
        std::vector<std::string> mine;
        Variable loss = replica.forward();
        replica.ddp.backward(loss);
        const auto backward = [&] { replica.ddp.backward(loss); };
        mine.push_back(error_of(replica, backward));  // a second one
        {
            const auto no_sync = replica.ddp.no_sync();
            loss = replica.forward();
            mine.push_back(error_of(replica, backward));
        }
        mine.push_back(error_of(replica, backward));
        loss = replica.model->forward(replica.tape.constant(Tensor(replica.device, {1, 64}), ""));
        mine.push_back(error_of(replica, backward));
        replica.clear();
        loss = replica.forward();
        mine.push_back(error_of(replica, backward));
        {
            // A forward that is to be reduced is, wherever its backward is.
            loss = replica.forward();
            const auto no_sync = replica.ddp.no_sync();
            replica.sent.clear();
            mine.push_back(error_of(replica, backward));
            mine.push_back(std::to_string(replica.sent.size()));
        }
        if (rank.rank() == 1)
            errors = mine;
    });
    const std::string refused = "a reduced backward needs its own forward, outside of no_sync";
    REQUIRE(errors == std::vector<std::string>{refused, "", refused, refused, "", "", "1"});
}

TEST_CASE("failures: NaN and infinity in one rank's gradient are traced to rank and parameter") {
    World world(thread_options(3, timeout_s));
    const auto learn = [&](float value, bool searches) {
        return prompt_failure(world, [&, value, searches](Rank& rank) {
            Replica replica(rank, make_small_mlp,
                            {.bucket_cap_bytes = 300, .check_finite = searches});
            for (int step = 0; step < 4; step++) {
                replica.ddp.backward(replica.forward(), [&](Parameter& parameter) {
                    if (rank.rank() == 1 && step == 2 && parameter.name == "linear2.weight")
                        parameter.gradient_for_writing().view(17, {1}).copy_from(
                            std::vector<float>{value});
                });
                replica.clear();
            }
            replica.synchronize();
        });
    };
    const std::string sentence =
        "rank 1: the gradient of 'linear2.weight' is infinite or no number at element 17 of 91: "
        "the steps are too long, or the loss divides by zero";
    REQUIRE(learn(std::numeric_limits<float>::quiet_NaN(), true) == sentence);
    REQUIRE(learn(-std::numeric_limits<float>::infinity(), true) == sentence);
    REQUIRE(learn(1e30f, true) == "");
    REQUIRE(learn(std::numeric_limits<float>::quiet_NaN(), false) == "");  // no check was asked for
}

TEST_CASE("failures: what one rank throws in the middle of a step reaches all ranks") {
    World world(thread_options(3, timeout_s));
    for (const int victim : {0, 1}) {
        std::vector<std::string> heard(3);
        const std::string failure = prompt_failure(world, [&, victim](Rank& rank) {
            Replica replica(rank, make_small_mlp, {.bucket_cap_bytes = 0});
            replica.step();
            try {
                replica.ddp.backward(replica.forward(), [&](Parameter& parameter) {
                    if (rank.rank() == victim && parameter.name == "linear2.bias")
                        throw std::runtime_error("broken on purpose");
                });
                replica.synchronize();
            } catch (const RunFailed& error) {
                heard[static_cast<std::size_t>(rank.rank())] = error.what();
                throw;
            }
        });
        const std::string cause = "rank " + std::to_string(victim) + ": broken on purpose";
        REQUIRE(failure == cause);
        for (int rank = 0; rank < 3; rank++)
            REQUIRE(heard[static_cast<std::size_t>(rank)] == (rank == victim ? "" : cause));
    }
}

}  // namespace ddp::test
