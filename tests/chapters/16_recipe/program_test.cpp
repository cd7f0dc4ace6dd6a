// The chapter's program: its three tables, for threads and for processes, and what it refuses.
#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program program(RECIPE_PROGRAM);

}  // namespace

TEST_CASE("recipe: three tables, the same for threads and for processes") {
    const Pictures data(120, 20);
    const std::pair<const char*, int> starts[] = {
        {"--ranks", 1}, {"--ranks", 3}, {"--processes", 3}};
    std::string of_threads;
    for (const auto& [how, ranks] : starts) {
        if (std::string(how) == "--processes" && !processes_can_run_kernels(ranks))
            continue;
        CAPTURE(how, ranks);
        const ProgramRun run =
            program.run({"--data", data.folder(), "--quick", how, std::to_string(ranks)});
        for (const char* title : {"Clipping and dropout: 3 steps", "Products of 16-bit numbers: 3",
                                  "An overflow on some ranks: float16, 3 steps"})
            REQUIRE(run.count(title) == 1);
        REQUIRE(run.csv.rows.size() == 6);
        for (const std::size_t right : {0, 3})
            REQUIRE(run.csv.number(right, "difference") < 1e-5);
        REQUIRE(run.csv.number(2, "equal_replicas") == (ranks == 1 ? 1 : 0));
        // The gradient by powers of two: nearly all of it is below 1, and none is lost.
        const Csv gradient = run.beside("gradient");
        double all = 0;
        for (std::size_t i = 0; i < gradient.rows.size(); i++)
            all += gradient.number(i, "exponent") < 0 ? gradient.number(i, "share") : 0;
        REQUIRE((all > 0.2 && all <= 1.001));
        if (std::string(how) == "--processes")
            REQUIRE(run.output == of_threads);
        if (ranks == 3)
            of_threads = run.output;
    }
    REQUIRE(nothing_is_left(RECIPE_PROGRAM));
}

TEST_CASE("recipe: fewer pictures than the trainings' own batches take") {
    const Pictures data(7, 4);
    program.run({"--data", data.folder(), "--ranks", "3", "--quick"});
}

TEST_CASE("recipe: bad input in one sentence") {
    REQUIRE(count(program.refusal({"--trace", "x.json"}), "a step is in 15_overlap") == 1);
    REQUIRE(count(program.refusal({"--data", "/nonexistent"}, 1), "was not found") == 1);
}

}  // namespace ddp::test
