// Which buckets are sent, in which order, and what hooks do to them.
#include "03_network/cross_entropy.hpp"
#include "03_network/layers/initialisers.hpp"
#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/hooks_by_name.hpp"
#include "tests/chapters/15_overlap/replica.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Names = std::vector<std::string>;

// The names of the gradients, bucket by bucket.
Names names_in_order(const BucketPlan& plan) {
    Names names;
    for (const BucketPlan::Bucket& bucket : plan.buckets)
        for (const std::size_t gradient : bucket.gradients)
            names.push_back(plan.gradients[gradient].name);
    return names;
}

// The record of one rank.
struct Seen {
    std::vector<BucketPlan> plans;        // during each step
    std::vector<std::vector<Sent>> sent;  // in each step
    std::vector<Names> ready;             // the order of each step
};

Seen watch_steps(Replica& replica, int steps) {
    Seen seen;
    for (int step = 0; step < steps; step++) {
        replica.sent.clear();
        Names ready;
        const Variable loss = replica.forward();
        seen.plans.push_back(replica.ddp.gradients().plan());
        replica.ddp.backward(loss, [&](Parameter& parameter) { ready.push_back(parameter.name); });
        replica.clear();
        seen.sent.push_back(replica.sent);
        seen.ready.push_back(ready);
    }
    replica.synchronize();
    return seen;
}

std::vector<Sent> expected_of(const BucketPlan& plan) {
    std::vector<Sent> all;
    for (const BucketPlan::Bucket& bucket : plan.buckets)
        all.push_back({"bucket " + std::to_string(all.size()), bucket.size});
    return all;
}

using Assignment = std::vector<std::vector<std::size_t>>;  // gradients of each bucket

Assignment assignment(const Golden& golden, const std::string& what) {
    Assignment buckets;
    const std::vector<float>& gradients = golden.tensor(what + ".gradients").values;
    auto next = gradients.begin();
    for (const float size : golden.tensor(what + ".sizes").values) {
        buckets.emplace_back(next, next + static_cast<std::ptrdiff_t>(size));
        next += static_cast<std::ptrdiff_t>(size);
    }
    return buckets;
}

Assignment assignment(const BucketPlan& plan) {
    Assignment buckets;
    for (const BucketPlan::Bucket& bucket : plan.buckets)
        buckets.push_back(bucket.gradients);
    return buckets;
}

}  // namespace

TEST_CASE("buckets: one at first; rebuilt once, by rank 0's order, and sent in their own order") {
    for (const int ranks : {1, 2, 3, 4})
        for (const bool overlap : {true, false}) {
            World world(thread_options(ranks));
            std::vector<Seen> seen(static_cast<std::size_t>(ranks));
            world.run([&](Rank& rank) {
                Replica replica(rank, make_branches, {.bucket_cap_bytes = 0, .overlap = overlap});
                dynamic_cast<Branches&>(*replica.model).b_comes_first = rank.rank() != 0;
                seen[static_cast<std::size_t>(rank.rank())] = watch_steps(replica, 4);
            });
            const Names order = seen[0].ready[0];
            REQUIRE(order.size() == 6);
            if (ranks > 1)
                REQUIRE(seen[1].ready[0] != order);
            for (const Seen& rank : seen) {
                CAPTURE(ranks, overlap, &rank - seen.data());
                REQUIRE(rank.plans[0].buckets.size() == 1);
                REQUIRE(names_in_order(rank.plans[0]) == Names{"a.weight", "a.bias", "b.weight",
                                                               "b.bias", "head.weight",
                                                               "head.bias"});
                REQUIRE(rank.plans[1].buckets.size() == 6);
                REQUIRE(names_in_order(rank.plans[1]) == order);
                REQUIRE(rank.plans[2] == rank.plans[1]);
                REQUIRE(rank.plans[3] == rank.plans[1]);
                for (std::size_t step = 0; step < 4; step++)
                    REQUIRE(rank.sent[step] == expected_of(rank.plans[step]));
            }
        }
}

TEST_CASE("buckets: a cap for each bucket holds from the first step on") {
    const std::vector<std::size_t> caps{0, 1 << 20};
    World world(thread_options(2));
    std::vector<BucketPlan> plans;
    world.run([&](Rank& rank) {
        Replica replica(rank, make_branches, {.bucket_caps = caps});
        const Seen seen = watch_steps(replica, 2);
        if (rank.rank() == 1)
            plans = seen.plans;
    });
    REQUIRE(plans[0] == first_plan(plans[0].gradients, caps));
    REQUIRE(plans[0].buckets.size() == 2);
    REQUIRE(plans[1].buckets[0].gradients.size() == 1);  // the first that is ready
}

TEST_CASE("buckets: the plans are those of PyTorch's DistributedDataParallel") {
    const std::vector<std::pair<std::string, std::vector<int>>> networks{
        {"ddp_mlp.txt", {784, 1024, 1024, 10}}, {"ddp_eight.txt", std::vector<int>(9, 512)}};
    World world(thread_options(2));
    for (const auto& [file, widths] : networks) {
        const Golden golden = read_golden(file);
        std::vector<Assignment> plans;
        world.run([&, widths = widths](Rank& rank) {
            auto& device = make_run_scoped<Device>(rank, std::size_t{64} << 20);
            Random random(1);
            const auto mlp = make_mlp(device, random, widths);
            const auto communicator = make_communicator("native", rank, ddp_arena_bytes(*mlp));
            DistributedDataParallel ddp(*communicator, device, *mlp);
            for (int iteration = 1; iteration <= 3; iteration++) {
                Tape tape(device);
                const Variable logits =
                    ddp.forward(tape.constant(constant(device, {2, widths[0]}, 0.5f)));
                ddp.backward(cross_entropy(logits, Labels(device, {2}, std::vector<int>{0, 1})));
                if (rank.rank() == 1)
                    plans.push_back(assignment(ddp.gradients().plan()));
            }
            communicator->synchronize(device.stream());
        });
        CAPTURE(file);
        for (std::size_t i = 0; i < 3; i++)
            REQUIRE(plans[i] == assignment(golden, "iteration" + std::to_string(i + 1)));
        REQUIRE(plans[0] != plans[1]);
    }
}

TEST_CASE("buckets: a hook may do anything to a bucket") {
    World world(thread_options(2));
    std::vector<std::vector<float>> averages(2), sums(2), sevens(2);
    const auto learn = [&](std::vector<std::vector<float>>& gradients, const BucketHook& hook) {
        world.run([&](Rank& rank) {
            Replica replica(rank, make_small_mlp, {.bucket_cap_bytes = 0});
            if (hook)
                replica.ddp.set_bucket_hook(hook);
            replica.step();
            replica.ddp.backward(replica.forward());  // in buckets of their own
            replica.synchronize();
            gradients[static_cast<std::size_t>(rank.rank())] = replica.gradient("linear2.weight");
        });
    };
    learn(averages, {});
    learn(sums, [](Communicator& communicator, Tensor bucket, Stream& stream, const std::string&) {
        communicator.all_reduce(bucket.data(), bucket.data(), bucket.size(), ReduceOp::sum, stream);
    });
    REQUIRE(averages[0].size() == 91);
    REQUIRE(averages[1] == averages[0]);
    REQUIRE(sums[1] == sums[0]);
    for (std::size_t i = 0; i < averages[0].size(); i++)
        REQUIRE(sums[0][i] == 2 * averages[0][i]);
    std::vector<std::vector<float>> own(2);
    learn(own, noop_bucket);
    REQUIRE(own[0] != own[1]);
    for (std::size_t i = 0; i < own[0].size(); i++)
        REQUIRE((own[0][i] + own[1][i]) / 2 == averages[0][i]);
    // All ranks get the numbers of rank 1.
    learn(sevens,
          [](Communicator& communicator, Tensor bucket, Stream& stream, const std::string& name) {
              communicator.broadcast(bucket.data(), bucket.size(), 1, stream, name);
          });
    REQUIRE(sevens[0] == sevens[1]);
    REQUIRE(sevens[0] != averages[0]);
}

TEST_CASE("buckets: a track shows when each was reduced") {
    World world(thread_options(2));
    std::vector<StreamSpan> spans;
    world.run([&](Rank& rank) {
        Replica replica(rank, make_small_mlp, {.bucket_cap_bytes = 0});
        replica.step();
        StreamTrack track("communication", replica.ddp.communication_stream());
        replica.ddp.set_track(&track);
        replica.step();
        replica.ddp.set_track(nullptr);
        replica.step();
        replica.synchronize();
        if (rank.rank() == 1)
            spans = track.read(1);
    });
    REQUIRE(spans.size() == 6);
    REQUIRE(spans[0].what.starts_with("bucket 0, "));
    REQUIRE(spans[5].what.starts_with("bucket 5, "));
    REQUIRE(spans[5].what.ends_with(" KiB"));
    for (const StreamSpan& span : spans) {
        REQUIRE(span.rank == 1);
        REQUIRE(span.track == "communication");
    }
}

// Returns the hash of each rank's parameters: the first group trains branches, which its ranks
// compute in different orders, and the second one, in more steps, a network with buffers.
std::vector<std::uint64_t> hashes_of_groups(int ranks, const std::vector<Group>& groups) {
    World world(thread_options(ranks));
    std::vector<std::uint64_t> hashes(static_cast<std::size_t>(ranks));
    world.run([&](Rank& rank) {
        const bool is_first = groups[0].index_of(rank.rank()) >= 0;
        Replica replica(rank, is_first ? make_branches : make_normed, {.bucket_cap_bytes = 100},
                        is_first ? groups[0] : groups[1]);
        if (is_first)
            dynamic_cast<Branches&>(*replica.model).b_comes_first = replica.communicator->index();
        Sgd optimizer(replica.model->parameters(), 0.1);
        for (int step = 0; step < (is_first ? 3 : 8); step++) {
            replica.ddp.backward(replica.forward());
            optimizer.step();
            replica.clear();
        }
        replica.synchronize();
        hashes[static_cast<std::size_t>(rank.rank())] = hash_of(replica.model->parameters());
    });
    return hashes;
}

TEST_CASE("buckets: two groups train two models at once, each as if it were alone") {
    const std::uint64_t first = hashes_of_groups(3, {Group({0, 1, 2})})[0];
    const std::uint64_t second = hashes_of_groups(2, {Group({2}), Group({0, 1})})[0];
    REQUIRE(first != second);
    REQUIRE(hashes_of_groups(5, {Group({0, 2, 4}), Group({3, 1})}) ==
            std::vector{first, second, first, second, first});
}

TEST_CASE("buckets: a model that learns nothing is refused") {
    World world(thread_options(2));
    REQUIRE(has(failure_of(world,
                           [&](Rank& rank) {
                               Replica replica(rank, [](Device& device, Random& random) {
                                   auto model = make_small_mlp(device, random);
                                   for (const auto& parameter : model->parameters())
                                       parameter->is_frozen = true;
                                   return model;
                               });
                           }),
                "the model needs a parameter that is not frozen"));
}

}  // namespace ddp::test
