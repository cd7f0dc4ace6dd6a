// Who shares an axis with whom, and what is no mesh.
#include "24_mesh/device_mesh.hpp"
#include "common/report/options.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("device mesh: the groups of every rank") {
    struct Case {
        std::string shape, dp, pp, tp;  // a group's ranks, which have one digit
    };
    for (const Case& each : {Case{"2x2x2", "04 15 26 37", "02 13 46 57", "01 23 45 67"},
                             {"1x4x2", "0 1 2 3 4 5 6 7", "0246 1357", "01 23 45 67"},
                             {"3x1x2", "024 135", "0 1 2 3 4 5", "01 23 45"}}) {
        const MeshShape shape = mesh_shape_of(each.shape);
        World world(thread_options(shape.ranks()));
        const std::string failure = failure_of(world, [&](Rank& rank) {
            const DeviceMesh mesh(rank, shape);
            for (const auto& [axis, groups] :
                 {std::pair{Axis::dp, each.dp}, {Axis::pp, each.pp}, {Axis::tp, each.tp}}) {
                const Group group = mesh.group(axis);
                std::string mine;
                for (const int member : group.ranks())
                    mine += std::to_string(member);
                if (!has(" " + groups + " ", " " + mine + " ") ||
                    mine.at(static_cast<std::size_t>(mesh.index(axis))) != '0' + rank.rank() ||
                    mine.size() != static_cast<std::size_t>(mesh.size(axis)))
                    throw std::runtime_error("it has the group " + mine + " of " + groups);
            }
        });
        CAPTURE(each.shape);
        REQUIRE(failure == "");
    }
}

TEST_CASE("device mesh: what is no mesh, in one sentence") {
    REQUIRE(mesh_shape_of("2x3x4") == MeshShape{2, 3, 4});
    REQUIRE(mesh_shape_of("64x1x10").text() == "64 x 1 x 10");
    for (const std::string text : {"", "2", "2x2", "2x2x", "x2x2", "2x2,2", "0x1x1", "-1x1x1",
                                   "1x1x65", "1 x1x1", "2x2x2x2", "1x1x1.5"})
        REQUIRE(message_of([&] { mesh_shape_of(text); }) ==
                "A mesh is three numbers, replicas x stages x parts, such as 2x2x2; '" + text +
                    "' is not.");
}

}  // namespace ddp::test
