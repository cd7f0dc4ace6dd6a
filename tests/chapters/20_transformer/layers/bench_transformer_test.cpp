// That the bench measures both, and says beside which PyTorch; not how fast anything is.
#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

const Program transformer_bench(BENCH_TRANSFORMER,
                                {"--quick", "--width", "128", "--sentences", "3"});

}  // namespace

TEST_CASE("bench transformer measures the PyTorch of the Python that is named, beside this book") {
    // It stands in for a Python with PyTorch: each round has taken the same seconds.
    const TemporaryFolder folder;
    const std::filesystem::path python = folder / "python";
    std::ofstream(python) << "#!/bin/sh\n"
                             "echo \"# PyTorch 9.8.7, one thread a rank\"\n"
                             "while read -r line; do echo 0.25; done\n";
    std::filesystem::permissions(python, std::filesystem::perms::owner_all);
    const ProgramRun run = transformer_bench.run({"--pytorch", python});
    REQUIRE(run.count("PyTorch 9.8.7, one thread a rank") == 1);
    REQUIRE(run.count("PyTorch was not measured") == 0);
    REQUIRE(run.csv.rows.size() == 2);
    REQUIRE(run.csv.text(0, "program") == "this book");
    REQUIRE(run.csv.number(1, "step_ms") == Approx(250));
    REQUIRE(run.csv.number(1, "tokens_per_s") == Approx((10 + 11 + 12) / 0.25));
}

TEST_CASE("a step takes the memory that its sizes predict") {
    const ProgramRun run = transformer_bench.run({"--parts"});
    for (const std::string what : {"kept by forward for backward", "at most"}) {
        CAPTURE(what);
        std::smatch found;
        REQUIRE(std::regex_search(run.output, found,
                                  std::regex(what + " +([0-9.]+) MiB +([0-9.]+) MiB")));
        REQUIRE(std::stod(found[2]) == Approx(std::stod(found[1])).epsilon(0.03));
    }
}

TEST_CASE("bench transformer refuses a Python without PyTorch, and shows a step's parts") {
    const TemporaryFolder folder;
    const std::string nothing = folder / "python";
    REQUIRE(transformer_bench.refusal({"--pytorch", nothing}) ==
            "error: --pytorch " + nothing + " is no Python that has PyTorch: `" + nothing +
                " -c 'import torch'` must work.\n");
    const ProgramRun run = transformer_bench.run({"--parts"});
    for (const char* part : {"forward encoder layer 1", "backward decoder layer 0", "optimizer"})
        REQUIRE(run.count(part) == 1);
    const Csv parts = run.beside("parts");
    double shares = 0;
    for (std::size_t row = 0; row < parts.rows.size(); row++)
        shares += parts.number(row, "share");
    REQUIRE(shares == Approx(1));
}

}  // namespace ddp::test
