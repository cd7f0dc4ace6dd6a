// Beside which PyTorch `bench train` measures, and that it says so; the tables of `bench traffic`.
// Not how fast anything is.
#include <filesystem>
#include <fstream>

#include "common/gpu/launch.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program bench(BENCH_TRAIN, {"--ranks", "1", "--quick", "--rounds", "1"});
const Program traffic(BENCH_TRAFFIC);

// Writes a program that stands in for a Python with PyTorch: it answers every round with the same
// seconds. Returns its path.
std::string write_python(const TemporaryFolder& folder) {
    const std::filesystem::path path = folder / "python";
    std::ofstream(path) << "#!/bin/sh\n"
                           "echo \"# PyTorch 9.8.7, one thread a rank\"\n"
                           "while read -r line; do echo 0.25; done\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
}

}  // namespace

TEST_CASE("bench train measures the PyTorch of the Python that is named, and says its version",
          "[.long]") {
    const TemporaryFolder folder;
    const ProgramRun run = bench.run({"--pytorch", write_python(folder)});
    REQUIRE(run.count("PyTorch 9.8.7, one thread a rank") == 1);
    REQUIRE(run.count("PyTorch was not measured") == 0);
    REQUIRE(run.csv.rows.size() == 3);
    REQUIRE(run.csv.text(1, "model") == "mlp_products");
    REQUIRE(run.csv.number(1, "step_ms") > 0);
    // Two models of 1.9 million parameters and their gradients take 14 MiB. A GPU's do not count.
    if (kernels_run_on_cpu)
        REQUIRE(run.csv.number(0, "mib_per_rank") > 14);
    REQUIRE(run.csv.number(2, "mib_per_rank") < 5);  // a shell
    REQUIRE(run.csv.text(2, "model") == "mlp_pytorch");
    REQUIRE(run.csv.number(2, "step_ms") == Approx(50));  // 0.25 s for five steps
}

TEST_CASE("bench train refuses a Python without PyTorch, and says when it has measured none") {
    const TemporaryFolder folder;
    const std::string nothing = folder / "python";
    REQUIRE(bench.refusal({"--pytorch", nothing}) ==
            "error: --pytorch " + nothing + " is no Python that has PyTorch: `" + nothing +
                " -c 'import torch'` must work.\n");
    REQUIRE(bench.run({"--pytorch", "off"}).count("PyTorch was not measured. --pytorch PYTHON") ==
            1);
}

TEST_CASE("bench traffic: three orders, three tables, and a row of each hook in the file") {
    const Pictures data(7, 4);  // fewer than a batch takes
    const ProgramRun run = traffic.run({"--data", data.folder(), "--ranks", "3", "--quick"});
    for (const char* part : {"all ranks must do the same, in the same order",
                             "is right to the last digits", "float16, divided after",
                             "Bucket hooks: 5 steps", "forward and backward      3            3 "})
        REQUIRE(run.count(part) == 1);
    REQUIRE(run.csv.rows.size() == 6);
    if (processes_can_run_kernels(3))
        traffic.run({"--data", data.folder(), "--processes", "3", "--quick"});
    REQUIRE(nothing_is_left(BENCH_TRAFFIC));
}

}  // namespace ddp::test
