// The memory of a step against time: its file is read back.
#include <filesystem>

#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

const Program micro_batches(BENCH_MICRO_BATCHES);

}  // namespace

TEST_CASE("bench micro_batches: memory against time rises in forward and falls in backward") {
    const Pictures pictures(200, 30);
    const ProgramRun run = micro_batches.run(
        {"--data", pictures.folder(), "--batch", "64", "--micro-batch", "64,8,1"});
    REQUIRE(has(run.output, "64 pictures at a time  "));
    REQUIRE(has(run.output, " 8 pictures at a time  "));
    REQUIRE(!has(run.output, " 1 pictures at a time  "));  // 64 micro-batches: too many to see
    const Csv& memory = run.csv;
    for (const double size : {64.0, 8.0}) {
        std::vector<std::size_t> rows;
        for (std::size_t i = 0; i < memory.rows.size(); i++)
            if (memory.number(i, "pictures") == size)
                rows.push_back(i);
        // Each micro-batch goes from forward to backward; after the last one the memory is as it
        // was before the first.
        int backwards = 0;
        double most = 0, before = 0;
        for (const std::size_t i : rows) {
            REQUIRE(memory.number(i, "seconds") >= before);
            before = memory.number(i, "seconds");
            most = std::max(most, memory.number(i, "bytes"));
            backwards += i > rows.front() && memory.text(i, "phase") == "backward" &&
                         memory.text(i - 1, "phase") == "forward";
        }
        REQUIRE(backwards == 64 / size);
        REQUIRE(memory.number(rows.front(), "bytes") == memory.number(rows.back(), "bytes"));
        // 5,344 bytes a picture, and up to 24 tensors in blocks of 512.
        const double activations = most - memory.number(rows.front(), "bytes");
        REQUIRE(activations >= 5344 * size);
        REQUIRE(activations <= 5344 * size + 512 * 24);
    }
}

TEST_CASE("bench micro_batches: memory of a step in too many micro-batches is not drawn") {
    const Pictures pictures(200, 30);
    const TemporaryFolder folder;
    const auto run = [&](const std::string& sizes) {
        return micro_batches
            .call({"--data", pictures.folder(), "--batch", "128", "--micro-batch", sizes, "--csv",
                   (folder / "run.csv").string()})
            .output;
    };
    REQUIRE(has(run("128,8"), "The highest block is"));
    REQUIRE(std::filesystem::exists(folder / "run.csv"));
    REQUIRE(has(run("8,1"), "at most 8 micro-batches: here there are 16."));
    REQUIRE(!std::filesystem::exists(folder / "run.csv"));  // nor is the earlier run's left
}

}  // namespace ddp::test
