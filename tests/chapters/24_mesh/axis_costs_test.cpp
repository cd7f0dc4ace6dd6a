// The bytes of each axis, by hand, as in after_ddp.md; and the mesh that is chosen.
#include "24_mesh/axis_costs.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("axis costs: the rows of after_ddp.md, for Llama 2 7B") {
    const MeshCost tensor = cost_of(llama_7b, {1, 1, 8}, 1);
    REQUIRE(tensor.tp.messages == 4 * 32);
    REQUIRE(tensor.tp.bytes == 32 * 4 * 2 * 7 / 8.0 * 4096 * 4096 * 2);
    REQUIRE(tensor.tp.bytes == Approx(7.5e9).epsilon(0.003));
    REQUIRE(tensor.tp.exposed_s == tensor.tp.seconds);
    const MeshCost pipeline = cost_of(llama_7b, {1, 8, 1}, 1);
    REQUIRE(pipeline.pp.messages == 2);
    REQUIRE(pipeline.pp.bytes == Approx(67.1e6).epsilon(0.001));
    REQUIRE(pipeline.idle_s == Approx(7 * pipeline.compute_s));
    const MeshCost data = cost_of(llama_7b, {8, 1, 1}, 8);
    REQUIRE(data.dp.messages == 1);
    REQUIRE(data.dp.bytes == Approx(23.6e9).epsilon(0.001));
    REQUIRE(data.dp.exposed_s < data.dp.seconds);
    REQUIRE(data.state == Approx(37.06e9).epsilon(0.001));  // ZeRO-1's
    for (const AxisCost& none : {tensor.pp, tensor.dp, pipeline.tp, pipeline.dp, data.tp, data.pp})
        REQUIRE((none.messages == 0 && none.bytes == 0 && none.seconds == 0));
}

TEST_CASE("axis costs: more sequences, stages and parts") {
    // 16 micro-batches of a replica, 8 layers of a stage, an eighth of the parameters of a rank.
    const MeshCost cost = cost_of(llama_7b, {4, 4, 2}, 64);
    REQUIRE(cost.tp.bytes == 4 * 16 * 8 * 4096.0 * 4096 * 2);
    REQUIRE(cost.dp.bytes == Approx(2 * 3 / 4.0 * 2 * llama_7b.parameters / 8));
    REQUIRE(cost.state == (4 + 12 / 4) * llama_7b.parameters / 8);
    REQUIRE(cost.idle_s == Approx((cost.compute_s + cost.tp.exposed_s) * 3 / 16));
    // 1F1B keeps four sequences, or as many as there are.
    REQUIRE(cost.activations == 4 * 8 * 4096.0 * 4096 * (10 + 12));
    REQUIRE(cost_of(llama_7b, {4, 4, 2}, 8).activations == cost.activations / 2);
}

TEST_CASE("axis costs: the best mesh fits, and no other one that fits is faster") {
    constexpr double memory = 80e9;
    const MeshShape best = best_shape(llama_70b, 64, 64, memory);
    const MeshCost cost = cost_of(llama_70b, best, 64);
    REQUIRE(cost.memory() <= memory);
    for (const int tp : {1, 2, 4, 8, 16})
        for (int pp = 1; pp <= 16 && pp <= 64 / tp; pp *= 2) {
            const MeshShape shape{64 / (tp * pp), pp, tp};
            const MeshCost other = cost_of(llama_70b, shape, 64);
            CAPTURE(best.text(), shape.text());
            REQUIRE((other.memory() > memory || other.step_s() >= cost.step_s()));
        }
    REQUIRE(best_shape(llama_70b, 64, 64, memory, 16).tp == 16);
}

TEST_CASE("axis costs: refusals in one sentence") {
    REQUIRE(message_of([] { best_shape(llama_70b, 8, 1024, 80e9); }) ==
            "no mesh of 8 ranks has room for 70 B parameters");
    for (const MeshShape shape : {MeshShape{3, 1, 1}, {1, 5, 1}, {3, 5, 1}})
        REQUIRE(message_of([&] { cost_of(llama_7b, shape, 1024); }) ==
                "a mesh of " + shape.text() +
                    " divides neither 1024 sequences nor 32 layers, or only one of them");
}

}  // namespace ddp::test
