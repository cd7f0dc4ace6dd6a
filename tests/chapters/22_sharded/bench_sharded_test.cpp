// That the bench measures and simulates every sharding, and says beside which PyTorch; not how fast
// anything is.
#include <filesystem>
#include <fstream>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

const Program bench(BENCH_SHARDED, {"--quick", "--batch", "4", "--rounds", "2"});

}  // namespace

TEST_CASE("bench sharded measures every sharding, and simulates it here and at scale") {
    const ProgramRun run = bench.run({"--ranks", "3", "--link", "1GB/s,0ms", "--pytorch", "off"});
    REQUIRE(run.count("PyTorch's fully_shard was not measured. --pytorch PYTHON") == 1);
    REQUIRE(run.csv.rows.size() == 5);
    REQUIRE(run.csv.text(0, "sharding") == "0: DDP");
    REQUIRE(run.csv.text(4, "sharding") == "3, no prefetch");
    // All gradients and parameters of one float pass each port twice, or at stage 3 thrice.
    const double parameters = 8.0 * 512 * 513, seconds = 2.0 / 3 * parameters * 4 / 1e9;
    for (std::size_t row = 0; row < 5; row++) {
        CAPTURE(row);
        const double least_s = (row < 3 ? 2 : 2.5) * seconds;  // two units may still be there
        REQUIRE(run.csv.number(row, "linked_ms") > least_s * 1e3);
        REQUIRE(run.csv.number(row, "predicted_ms") > least_s * 1e3);
        REQUIRE(run.csv.number(row, "bare_ms") > 0);
    }
    // 400 TFLOP/s, and eight ports of 48 GB/s through which a node's bytes come in once.
    REQUIRE(run.count("  1041             1041\n") == 1);
    const Csv scale = run.beside("scale");
    REQUIRE(scale.rows.size() == 15);  // five shardings on 8, 64 and 512 ranks
    for (std::size_t row = 0; row < scale.rows.size(); row++) {
        REQUIRE(scale.number(row, "efficiency") > 0);
        REQUIRE(scale.number(row, "efficiency") < 1);
    }
}

TEST_CASE("bench sharded measures the PyTorch of the Python that is named, and says its version",
          "[.long]") {
    // It stands in for a Python with PyTorch: each round has taken the same seconds.
    const TemporaryFolder folder;
    const std::filesystem::path python = folder / "python";
    std::ofstream(python) << "#!/bin/sh\n"
                             "echo \"$@\" >\"$0.words\"\n"
                             "echo \"# PyTorch 9.8.7, one thread a rank\"\n"
                             "while read -r line; do echo 0.25; done\n";
    std::filesystem::permissions(python, std::filesystem::perms::owner_all);
    const ProgramRun run = bench.run({"--pytorch", python});
    REQUIRE(run.count("PyTorch 9.8.7, one thread a rank") == 1);
    REQUIRE(run.count("was not measured") == 0);
    REQUIRE(count(contents(folder / "python.words"),
                  "--model deep --batch 64 --ranks 2 --wrapper fully_shard") == 1);
    const Csv csv = run.beside("pytorch");
    REQUIRE(csv.rows.size() == 3);
    REQUIRE(csv.number(2, "step_ms") == Approx(25));  // 0.25 s for ten steps
    for (std::size_t row = 0; row < 2; row++)
        REQUIRE(csv.number(row, "ratio") > 0);
}

TEST_CASE("bench sharded refuses a Python without fully_shard") {
    const TemporaryFolder folder;
    const std::string nothing = folder / "python";
    REQUIRE(bench.refusal({"--pytorch", nothing}) ==
            "error: --pytorch " + nothing + " is no Python whose PyTorch has fully_shard: `" +
                nothing + " -c 'import torch.distributed.fsdp'` must work, from 2.6 on.\n");
}

}  // namespace ddp::test
