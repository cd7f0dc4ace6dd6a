// The chapter's program: its tables are read back.
#include "tests/support/program.hpp"

#include <map>
#include <set>

#include "common/gpu/gpu.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program kernels(KERNELS_PROGRAM);

// Runs the program with the threads of a block in another order.
std::string output_in_order(const std::string& order) {
    const ChildResult result = run_command({KERNELS_PROGRAM, "--quick", "--elements", "1024"},
                                           {"CUDA_ON_CPU=order=" + order});
    CAPTURE(result.output);
    REQUIRE(result.exit_code == 0);
    return result.output;
}

// What the run says of the race and of the tree without a barrier, and of the same done right.
struct Sums {
    int race, atomic, tree, bare_tree;
};
Sums sums_in(const std::string& output) {
    const Words sums = matches(output, "The sum is ([0-9]+); right is");
    REQUIRE(sums.size() == 4);
    return {std::stoi(sums[0]), std::stoi(sums[1]), std::stoi(sums[2]), std::stoi(sums[3])};
}

}  // namespace

TEST_CASE("kernels: threads, the tree, and five versions beside the limit") {
    const ProgramRun run = kernels.run({"--quick", "--elements", "640000"});
    REQUIRE(has(run.output, "0 sums are wrong"));
    REQUIRE(has(run.output, "block   0  0  0  0  1  1  1  1  2  2"));
    for (const char* part : {"x0+x1  x2+x3  x4+x5  x6+x7", "x0+x4  x1+x5  x2+x6  x3+x7", "x0+x2"})
        REQUIRE(has(run.output, part));
    const Csv& times = run.csv;
    REQUIRE(times.rows.size() == 6);
    REQUIRE(times.text(0, "version") == "atomics");
    REQUIRE(times.number(0, "elements") == 10'000);
    REQUIRE(times.text(4, "version") == "accumulators");
    REQUIRE(times.number(4, "elements") == 640'000);
    REQUIRE(times.number(4, "gbs") ==
            Approx(4e-3 * 640'000 / times.number(4, "median_us")).epsilon(1e-9));
    REQUIRE(times.text(5, "version") == "limit");
    REQUIRE(times.number(5, "share_of_limit") == 1);
}

TEST_CASE("kernels: the work beside the time, and the lanes that are busy") {
    const ProgramRun run = kernels.run({"--quick", "--elements", "640000"});
    const Csv work = run.beside("work");
    REQUIRE(work.rows.size() == 5);
    REQUIRE(work.number(0, "additions_in_a_row") == 1 << 20);
    REQUIRE(work.number(1, "barriers_in_a_row") == 27);
    REQUIRE(work.number(3, "barriers_in_a_row") == 2);
    for (std::size_t version : {2, 3, 4})  // the waits fall from one tree to the next
        REQUIRE(work.number(version, "waits") < work.number(version - 1, "waits"));
    REQUIRE(work.number(1, "ns_per_element") ==
            Approx(1e3 * run.csv.number(1, "median_us") / 10'000).epsilon(1e-9));

    const Csv warps = run.beside("warps");
    REQUIRE(warps.rows.size() == 2 * 127);
    std::map<std::string, int> busy;
    std::set<std::string> interleaved, sequential;  // a step and a warp that adds in it
    for (std::size_t i = 0; i < warps.rows.size(); i++) {
        const std::string order = warps.text(i, "order"), step = warps.text(i, "step");
        busy[order + step]++;
        (order == "interleaved" ? interleaved : sequential)
            .insert(step + " " + std::to_string(static_cast<int>(warps.number(i, "thread")) / 32));
    }
    REQUIRE(interleaved.size() == 23);
    REQUIRE(sequential.size() == 8);
    for (int step = 1; step <= 7; step++)
        for (const char* order : {"interleaved", "sequential"})
            REQUIRE(busy[order + std::to_string(step)] == 128 >> step);
}

TEST_CASE("kernels: a race and a missing barrier give another sum in another order of threads") {
    if (!kernels_run_on_cpu)
        return;
    const Sums forward = sums_in(output_in_order("forward"));
    REQUIRE(forward.race == 2);
    REQUIRE(forward.bare_tree == 11);
    const Sums reversed = sums_in(output_in_order("reversed"));
    REQUIRE(reversed.race == 1);
    REQUIRE(reversed.bare_tree == 36);
    bool is_race_1 = false, is_race_2 = false, is_tree_wrong = false;
    for (int seed = 1; seed <= 6; seed++) {
        const Sums random = sums_in(output_in_order("random:" + std::to_string(seed)));
        REQUIRE(random.atomic == 3);
        REQUIRE(random.tree == 36);
        is_race_1 |= random.race == 1;
        is_race_2 |= random.race == 2;
        is_tree_wrong |= random.bare_tree != 36;
    }
    REQUIRE((is_race_1 && is_race_2 && is_tree_wrong));
}

TEST_CASE("kernels: what makes no sense is refused in one sentence") {
    REQUIRE(kernels.refusal({"--elements", "12"}) ==
            "error: --elements needs a whole number from 1024 to 268435456, not '12'.\n");
    REQUIRE(has(kernels.refusal({"--ranks", "2"}), "ranks begin in 05_ranks"));
}

}  // namespace ddp::test
