// The hooks for later chapters: when they are called, and what they can do. Also: a step allocates
// nothing.
#include <array>

#include "03_network/optimizers.hpp"
#include "tests/chapters/15_overlap/replica.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;
using Names = std::vector<std::string>;

Branches& branches_of(Replica& replica) {
    return dynamic_cast<Branches&>(*replica.model);
}

// The parameters of the branch that is left out, which 17_unused_parameters finds by itself.
DdpHooks point_to_unreached(Replica& replica) {
    return {.after_forward = [&replica](Variable) {
        Parameters unreached;
        if (branches_of(replica).leaves_out_b)
            for (const auto& parameter : replica.model->parameters())
                if (parameter->name.starts_with("b."))
                    unreached.push_back(parameter);
        return unreached;
    }};
}

}  // namespace

TEST_CASE("points: they are called in order") {
    World world(thread_options(2));
    std::vector<Names> calls(2);
    world.run([&](Rank& rank) {
        Names& mine = calls[static_cast<std::size_t>(rank.rank())];
        Replica replica(rank, make_small_mlp, {.bucket_cap_bytes = 500});
        replica.ddp.set_hooks(
            {.before_forward =
                 [&](bool is_reduced) {
                     mine.push_back(is_reduced ? "before reduced" : "before alone");
                 },
             .after_forward =
                 [&](Variable output) {
                     const bool has_graph = output.tape->parameters_behind({output}).size() == 6;
                     mine.push_back(has_graph ? "after forward" : "no graph");
                     return Parameters();
                 },
             .before_finalize = [&] { mine.push_back("before finalize"); }});
        replica.ddp.set_bucket_hook([&](Communicator& communicator, Tensor bucket, Stream& stream,
                                        const std::string& name) {
            mine.push_back(name);
            average_bucket(communicator, bucket, stream, name);
        });
        replica.step();
        {
            const auto no_sync = replica.ddp.no_sync();
            replica.step();
        }
        replica.step();
        replica.ddp.set_hooks({});
        replica.step();
        replica.synchronize();
    });
    const Names expected{"before reduced",  "after forward", "bucket 0", "before finalize",
                         "before alone",  //
                         "before reduced",  "after forward", "bucket 0", "bucket 1",
                         "before finalize",  //
                         "bucket 0",        "bucket 1"};
    REQUIRE(calls[0] == expected);
    REQUIRE(calls[1] == expected);
}

TEST_CASE("points: parameters that backward does not reach count as zeros") {
    World world(thread_options(2));
    for (const std::size_t cap : {std::size_t{0}, default_bucket_bytes}) {
        std::vector<Values> own(2), reduced(2), in_bucket(2);
        world.run([&](Rank& rank) {
            const auto place = static_cast<std::size_t>(rank.rank());
            Replica replica(rank, make_branches, {.bucket_cap_bytes = cap});
            replica.ddp.set_hooks(point_to_unreached(replica));
            branches_of(replica).leaves_out_b = rank.rank() == 1;
            for (int step = 0; step < 3; step++)
                replica.step();
            replica.ddp.backward(replica.forward(), [&](Parameter& parameter) {
                if (parameter.name == "b.weight")
                    own[place] = parameter.gradient().to_host();
            });
            replica.synchronize();
            reduced[place] = replica.gradient("b.weight");
            in_bucket[place] = replica.ddp.gradients().view(2).to_host();
        });
        CAPTURE(cap);
        REQUIRE(own[0].size() == 5 * 64);
        REQUIRE(own[1].empty());
        REQUIRE(reduced[1].empty());  // absent, but in the bucket
        REQUIRE(in_bucket[1] == in_bucket[0]);
        REQUIRE(reduced[0] == in_bucket[0]);
        for (std::size_t i = 0; i < own[0].size(); i++)
            REQUIRE(reduced[0][i] == own[0][i] / 2);
    }
}

TEST_CASE("points: an unreached parameter keeps the gradient of no_sync") {
    World world(thread_options(2));
    std::vector<Values> own(2), reduced(2);
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Replica replica(rank, make_branches);
        replica.ddp.set_hooks(point_to_unreached(replica));
        replica.step();
        {
            const auto no_sync = replica.ddp.no_sync();
            replica.ddp.backward(replica.forward());
        }
        own[place] = replica.gradient("b.bias");
        branches_of(replica).leaves_out_b = true;
        replica.ddp.backward(replica.forward());
        replica.synchronize();
        reduced[place] = replica.gradient("b.bias");
    });
    REQUIRE(own[0].size() == 5);
    REQUIRE(own[0] != own[1]);
    REQUIRE(reduced[0] == reduced[1]);
    for (std::size_t i = 0; i < 5; i++)
        REQUIRE(reduced[0][i] == Approx((own[0][i] + own[1][i]) / 2).margin(1e-8));
}

TEST_CASE("points: a parameter wrongly listed as unreached is refused") {
    World world(thread_options(2));
    const std::string failure = failure_of(world, [&](Rank& rank) {
        Replica replica(rank, make_branches);
        replica.ddp.set_hooks({.after_forward = [&](Variable) -> Parameters {
            if (rank.rank() == 1)
                return {replica.model->parameters()[1]};
            return {};
        }});
        replica.step();
        replica.synchronize();
    });
    REQUIRE(failure ==
            "rank 1: backward computed a gradient for 'a.bias', but after_forward had listed it as "
            "unused in this step");
}

TEST_CASE("points: what backward leaves out counts as zeros if a hook allows it") {
    World world(thread_options(2));
    for (const bool overlap : {true, false}) {
        std::vector<Names> missing(2);
        std::vector<int> reached(2);
        std::vector<Values> own(2), in_bucket(2);
        world.run([&](Rank& rank) {
            const auto place = static_cast<std::size_t>(rank.rank());
            Replica replica(rank, make_branches, {.bucket_cap_bytes = 0, .overlap = overlap});
            replica.ddp.set_hooks({.after_gradient = [&](Parameter&) { reached[place]++; },
                                   .after_backward =
                                       [&](const Parameters& left_out) {
                                           for (const auto& parameter : left_out)
                                               missing[place].push_back(parameter->name);
                                       }});
            replica.step();
            {
                const auto no_sync = replica.ddp.no_sync();
                replica.step();
            }
            branches_of(replica).leaves_out_b = rank.rank() == 1;
            replica.ddp.backward(replica.forward());
            replica.synchronize();
            own[place] = replica.gradient("b.bias");
            in_bucket[place] = replica.ddp.gradients().view(3).to_host();
        });
        CAPTURE(overlap);
        REQUIRE(missing == std::vector<Names>{{}, {"b.weight", "b.bias"}});
        REQUIRE(reached == std::vector<int>{6 + 6 + 6, 6 + 6 + 4});  // also in no_sync
        REQUIRE(own[0].size() == 5);
        REQUIRE(own[1].empty());
        REQUIRE(in_bucket[0] == own[0]);
        REQUIRE(in_bucket[1] == own[0]);
    }
}

TEST_CASE("points: buckets that are not rebuilt, and buffers of another rank") {
    World world(thread_options(3));
    std::vector<int> is_first_plan(3);  // not of bool: its elements share bytes
    std::vector<Values> means(3), own(3);
    world.run([&](Rank& rank) {
        const auto place = static_cast<std::size_t>(rank.rank());
        Replica replica(rank, make_normed, {.bucket_cap_bytes = 100, .rebuild_buckets = false});
        const BucketPlan plan = replica.ddp.gradients().plan();
        for (int step = 0; step < 2; step++)
            replica.step();
        is_first_plan[place] = plan == replica.ddp.gradients().plan() && plan.buckets.size() > 1 &&
                               replica.ddp.state() == DdpState();  // and nothing grows
        const Tensor mean = replica.model->buffers()[0].value;
        own[place] = mean.to_host();
        replica.ddp.set_buffers_root(2);
        replica.ddp.share_buffers();
        replica.synchronize();
        means[place] = mean.to_host();
    });
    REQUIRE(is_first_plan == std::vector{1, 1, 1});
    REQUIRE(own[0] != own[2]);
    for (const Values& mean : means)
        REQUIRE(mean == own[2]);
}

TEST_CASE("points: a rank without data shadows the steps of those that have some") {
    // Rank 1 has data for `steps` steps: for none, for the one before buckets are made anew, for
    // some more.
    for (const int steps : {0, 1, 3}) {
        World world(thread_options(3));
        std::vector<std::vector<std::string>> plans(3);
        std::vector<Values> own(3), reduced(3);
        std::vector<std::size_t> sent(3);
        bool is_absent = false;
        world.run([&](Rank& rank) {
            const auto place = static_cast<std::size_t>(rank.rank());
            Replica replica(rank, make_normed, {.bucket_cap_bytes = 100});
            for (int step = 0; step < 4; step++)
                if (rank.rank() != 1 || step < steps)
                    replica.step();
                else
                    replica.ddp.shadow_step();
            if (rank.rank() == 1) {
                replica.ddp.shadow_step();
                is_absent = replica.gradient("linear.bias").empty();
            } else {
                replica.ddp.backward(replica.forward(), [&](Parameter& parameter) {
                    if (parameter.name == "linear.bias")
                        own[place] = parameter.gradient().to_host();
                });
            }
            replica.synchronize();
            const FlatBuffers& gradients = replica.ddp.gradients();
            reduced[place] =
                gradients.view(gradients.index_of(replica.parameter("linear.bias"))).to_host();
            plans[place].push_back(encode_plan(gradients.plan()));
            sent[place] = replica.sent.size();
        });
        CAPTURE(steps);
        REQUIRE(is_absent);
        REQUIRE(plans[1] == plans[0]);
        REQUIRE(plans[2] == plans[0]);
        REQUIRE(sent[1] == sent[0]);
        REQUIRE(reduced[1] == reduced[0]);
        REQUIRE(reduced[2] == reduced[0]);
        for (std::size_t i = 0; i < 10; i++)  // the mean of three numbers, one of them zero
            REQUIRE(reduced[0][i] == Approx((own[0][i] + own[2][i]) / 3).margin(1e-7));
    }
}

TEST_CASE("points: from the third step on nothing is allocated") {
    for (const MakeModel& model : {MakeModel(make_small_mlp), MakeModel(make_normed)}) {
        World world(thread_options(3));
        std::vector<std::vector<std::size_t>> allocations(3);
        std::array<bool, 3> is_pool_as_before{};
        world.run([&](Rank& rank) {
            const auto place = static_cast<std::size_t>(rank.rank());
            Replica replica(rank, model, {.bucket_cap_bytes = 200, .check_finite = true});
            Sgd optimizer(replica.model->parameters(), 0.1);
            const auto free_place = [&] { return replica.communicator->allocate<float>(1).data(); };
            const float* before = nullptr;
            for (int step = 0; step < 6; step++) {
                replica.ddp.backward(replica.forward());
                optimizer.step();
                replica.clear();
                const Device::Memory& memory = replica.device.memory();
                allocations[place].push_back(memory.allocations);
                allocations[place].push_back(memory.live_bytes);
                if (step == 1)
                    before = free_place();
            }
            replica.synchronize();
            is_pool_as_before[place] = free_place() == before;
        });
        for (std::size_t rank = 0; rank < 3; rank++) {
            REQUIRE(is_pool_as_before[rank]);
            for (std::size_t i = 4; i < allocations[rank].size(); i++)
                REQUIRE(allocations[rank][i] == allocations[rank][i - 2]);
        }
    }
}

}  // namespace ddp::test
