// Every mesh of 1, 2, 4 and 8 ranks trains as one rank does that takes the same sums.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iomanip>

#include "03_network/optimizers.hpp"
#include "11_data_parallel/replica.hpp"
#include "24_mesh/show/reports.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

MeshPlan small_plan(const MeshShape& shape, Schedule schedule) {
    return {.shape = shape,
            .schedule = schedule,
            .model = {.vocabulary = 24, .width = 16, .heads = 8, .feed_forward = 40, .length = 5},
            .steps = 3,
            .sentences = 16,
            .micro_batches = shape.dp <= 4 ? 4 : 2};
}

// A token's row of the table and of the scores, a block's six matrices and two norms, and the last
// norm: each matrix is cut into as many parts, and no norm is.
std::size_t predicted_bytes(const MeshPlan& plan, int stage) {
    const auto& [vocabulary, width, heads, blocks, feed_forward, length] = plan.model;
    const auto& [dp, pp, tp] = plan.shape;
    const int norm = 2 * width, matrices = 4 * width * width + 2 * width * feed_forward;
    int count = blocks / pp * (matrices / tp + 2 * norm);
    if (stage == 0)
        count += vocabulary * width / tp;
    if (stage == pp - 1)
        count += vocabulary * width / tp + norm;
    return static_cast<std::size_t>(count) * sizeof(float);
}

// Trains on the mesh, and compares every rank with one rank.
void require_as_one_rank(World& world, const MeshPlan& plan) {
    Device device(std::size_t{64} << 20);
    const MeshResult one = train_on_one_rank(device, plan);
    std::vector<MeshResult> results(static_cast<std::size_t>(world.world_size()));
    const std::string failure = failure_of(world, [&](Rank& rank) {
        rank.select_device();
        results[static_cast<std::size_t>(rank.rank())] = train_on_mesh(rank, plan);
    });
    const bool is_gpipe = plan.schedule == Schedule::gpipe;
    CAPTURE(plan.shape.text(), is_gpipe);
    REQUIRE(failure == "");
    REQUIRE(one.last_loss < one.first_loss);
    for (int r = 0; r < world.world_size(); r++) {
        const MeshResult& result = results[static_cast<std::size_t>(r)];
        const int stage = r / plan.shape.tp % plan.shape.pp;
        CAPTURE(r, stage);
        REQUIRE(std::abs(result.first_loss - one.first_loss) < 1e-5);
        REQUIRE(std::abs(result.last_loss - one.last_loss) < 1e-5);
        REQUIRE(result.hash == results[0].hash);
        if (plan.shape.dp <= 2) {
            REQUIRE(result.hash == one.hash);
            REQUIRE(result.norm == one.norm);
        } else {
            REQUIRE(result.norm == Approx(one.norm).epsilon(1e-5));
        }
        REQUIRE(result.parameters == predicted_bytes(plan, stage));
        REQUIRE(
            result.max_in_flight ==
            (is_gpipe ? plan.micro_batches : std::min(plan.micro_batches, plan.shape.pp - stage)));
    }
}

void require_all_shapes(int ranks) {
    World world(thread_options(ranks));
    for (const MeshShape& shape : all_shapes(ranks))
        for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::gpipe})
            require_as_one_rank(world, small_plan(shape, schedule));
}

}  // namespace

TEST_CASE("mesh training: every mesh of 1, 2 and 4 ranks ends in one rank's bits", "[as_one]") {
    for (const int ranks : {1, 2, 4})
        require_all_shapes(ranks);
}

TEST_CASE("mesh training: every mesh of 8 ranks ends in one rank's bits") {
    require_all_shapes(8);
}

TEST_CASE("mesh training: stages cost no bits, and whole matrices are close") {
    Device device(std::size_t{64} << 20);
    const auto of = [&](const MeshShape& shape) {
        return train_on_one_rank(device, small_plan(shape, Schedule::one_f_one_b));
    };
    const MeshResult whole = of({1, 1, 1}), parts = of({1, 1, 4});
    REQUIRE(of({1, 4, 1}).hash == whole.hash);
    REQUIRE(parts.hash != whole.hash);
    REQUIRE(std::abs(parts.last_loss / whole.last_loss - 1) < 1e-6);
}

// The losses that parallelize_test.py lays beside PyTorch's parallelize_module; not a test. Where a
// gradient is as small as Adam's usual eps, Adam would make large numbers of its rounding.
TEST_CASE("twin: the first weights, and the losses of two parts", "[.parallelize]") {
    const char *weights = std::getenv("MESH_WEIGHTS"), *path = std::getenv("MESH_LOSSES");
    REQUIRE((weights != nullptr && path != nullptr));
    const MeshPlan plan{
        .shape = {1, 1, 2}, .model = {}, .steps = 50, .sentences = 8, .micro_batches = 1};
    Device host(std::size_t{64} << 20);
    TensorParallel whole(1);
    std::ofstream first(weights), losses(path);
    first << std::setprecision(9);
    losses << std::setprecision(9);
    for (const auto& parameter :
         ParallelModel(whole, host, plan.model, 0, 1, plan.seed).parameters()) {
        first << parameter->name;
        for (const float value : parameter->value.to_host())
            first << " " << value;
        first << "\n";
    }
    World world(thread_options(plan.shape.tp));
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, std::size_t{64} << 20);
        const auto most =
            static_cast<std::size_t>(plan.sentences * plan.model.length * plan.model.width);
        const auto ranks = make_communicator("native", rank, TensorParallel::arena_bytes(most));
        TensorParallel parallel(*ranks, most);
        ParallelModel model(parallel, device, plan.model, 0, 1, plan.seed);
        Adam optimizer(model.parameters(), 0.003, 0.0, 1e-5);
        for (int step = 0; step < plan.steps; step++) {
            Tape tape(device);
            const CountingBatch batch = counting_batch(device, plan, step, 0, 0);
            const Variable loss = model.forward(tape, std::nullopt, batch.tokens, batch.target);
            tape.backward(loss);
            optimizer.step();
            optimizer.zero_gradients();
            const float value = loss.value().to_host()[0];
            if (rank.rank() == 0)
                losses << value << "\n";
        }
        ranks->synchronize(device.stream());
        rank.barrier();
    });
    REQUIRE((first.good() && losses.good()));
}

}  // namespace ddp::test
