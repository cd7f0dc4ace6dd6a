// The grid of steps: the buckets that a cap makes, and the time that a link takes for them.
#include <map>
#include <tuple>

#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program bench(BENCH_OVERLAP);

struct Buckets {
    int count = 0;
    double ms = 0;
};

}  // namespace

TEST_CASE("bench overlap --record: a step for each link and cap, with overlap and without") {
    const Csv grid = bench.run({"--record", "--quick", "--batch", "8"}).beside("grid");
    std::map<std::tuple<int, int, std::string, int>, Buckets> steps;
    for (std::size_t i = 0; i < grid.rows.size(); i++) {
        const double begin = grid.number(i, "begin_ms"), end = grid.number(i, "end_ms");
        REQUIRE(begin >= 0);
        REQUIRE(end >= begin);
        Buckets& step = steps[{static_cast<int>(grid.number(i, "cap_mib")),
                               static_cast<int>(grid.number(i, "link_mb_s")),
                               grid.text(i, "overlap"), static_cast<int>(grid.number(i, "rank"))}];
        if (grid.text(i, "stream") != "communication")
            continue;
        step.count++;
        step.ms += end - begin;
    }
    REQUIRE(steps.size() == 4 * 4 * 2 * 2);
    // Eight layers of 512 x 513 floats. A layer is a little more than 1 MiB, and its bias a little.
    const double bytes = 8 * 512 * 513 * 4;
    const std::map<int, int> buckets{{0, 16}, {1, 8}, {4, 2}, {16, 1}};
    for (const auto& [kind, step] : steps) {
        const auto& [cap, link, overlap, rank] = kind;
        CAPTURE(cap, link, overlap, rank);
        REQUIRE(step.count == buckets.at(cap));
        REQUIRE(step.ms >= 0.95 * bytes / (link * 1e3));
    }
}

}  // namespace ddp::test
