// Sharded within a node and replicated between nodes: the bits of DistributedDataParallel on the
// same nodes, where an all-reduce goes on two levels.
#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "15_overlap/ddp.hpp"
#include "22_sharded/sharded.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using HybridValues = std::vector<std::vector<float>>;

// Three steps of Adam on this rank's samples. Ranks begin with different parameters. Sharded, or
// replicated on all ranks.
HybridValues train_on_nodes(Rank& rank, const NodeShape& shape, bool is_sharded,
                            ShardedDataParallel::Held* held = nullptr) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, test_memory);
    Random random(7 + static_cast<std::uint64_t>(rank.rank()));
    const auto model = make_mlp(device, random, {64, 37, 29, 23, 10});
    const auto all = make_communicator("native", rank, 4 << 20, {.order = {.shape = shape}});
    Tape tape(device);
    const auto run = [&](auto& replica, Adam& adam, const auto& after_step) {
        for (int step = 0; step < 3; step++) {
            const int first = (step * rank.world_size() + rank.rank()) * 3;
            const Batch batch = batch_of(device, {first, first + 1, first + 2});
            replica.backward(
                cross_entropy(replica.forward(tape.constant(batch.images)), batch.labels));
            adam.step();
            adam.zero_gradients();
            after_step();
            tape.clear();
        }
        all->synchronize(device.stream());
    };
    HybridValues values;
    if (is_sharded) {
        HybridMesh hybrid = make_hybrid_mesh(rank, shape, blocks_of(*model), {});
        REQUIRE(hybrid.mesh.world_size() == shape.ranks_per_node);
        REQUIRE(hybrid.mesh.nodes() == shape.nodes);
        ShardedDataParallel sharded(std::move(hybrid.mesh), device, blocks_of(*model), 3);
        Adam adam(sharded.chunks(), 0.01);
        run(sharded, adam, [&] { sharded.after_step(); });
        values = sharded.whole_parameters();
        if (held != nullptr)
            *held = sharded.held();
        rank.barrier();
    } else {
        DistributedDataParallel ddp(*all, device, *model);
        ddp.set_state({encode_plan(units_of(blocks_of(*model), rank.world_size()).plan), {}});
        Adam adam(model->parameters(), 0.01);
        run(ddp, adam, [] {});
        for (const auto& parameter : model->parameters())
            values.push_back(parameter->value.to_host());
        rank.barrier();
    }
    return values;
}

}  // namespace

TEST_CASE("hybrid: every rank of every node ends in the bits of DDP on the same nodes") {
    for (const NodeShape shape :
         {NodeShape{2, 3}, NodeShape{3, 2}, NodeShape{1, 3}, NodeShape{3, 1}}) {
        CAPTURE(shape.text());
        const auto ranks = static_cast<std::size_t>(shape.ranks());
        World world(thread_options(shape.ranks()));
        std::vector<HybridValues> replicated(ranks), sharded(ranks);
        world.run([&](Rank& rank) {
            const auto r = static_cast<std::size_t>(rank.rank());
            replicated[r] = train_on_nodes(rank, shape, false);
            sharded[r] = train_on_nodes(rank, shape, true);
        });
        for (std::size_t r = 0; r < ranks; r++) {
            CAPTURE(r);
            REQUIRE(replicated[r] == replicated[0]);
            REQUIRE(sharded[r] == replicated[0]);
        }
    }
}

TEST_CASE("hybrid: a rank keeps as much as on its node alone") {
    World world(thread_options(6));
    ShardedDataParallel::Held of_two;
    world.run([&](Rank& rank) {
        ShardedDataParallel::Held held;
        train_on_nodes(rank, {2, 3}, true, &held);
        if (rank.rank() == 5)
            of_two = held;
    });
    std::size_t chunks = 0, largest = 0;  // of 3 ranks: two chunks of an all-reduce of six
    for (const auto& [in, out] : {std::pair{64, 37}, {37, 29}, {29, 23}, {23, 10}}) {
        const auto rounded = [](int elements, int unit) {
            return (elements + unit - 1) / unit * unit;
        };
        const int size = rounded(in * out, 16) + rounded(out, 16);
        const auto chunk =
            static_cast<std::size_t>(2 * rounded((size + 5) / 6, 32)) * sizeof(float);
        chunks += chunk;
        largest = std::max(largest, 3 * chunk);
    }
    REQUIRE(of_two.parameters == chunks + 2 * largest);
    REQUIRE(of_two.gradients == chunks + 2 * largest);
}

TEST_CASE("hybrid: refusals in one sentence") {
    World world(thread_options(2));
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(1);
        const auto model = make_mlp(device, random, {64, 37, 10});
        HybridMesh hybrid = make_hybrid_mesh(rank, NodeShape{2, 1}, blocks_of(*model), {});
        REQUIRE_THROWS_WITH(
            ShardedDataParallel(std::move(hybrid.mesh), device, blocks_of(*model), 1),
            ContainsSubstring("a model that is replicated between nodes takes stage 3"));
        rank.barrier();
    });
}

}  // namespace ddp::test
