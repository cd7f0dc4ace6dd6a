// The chapter's program: what it says, for threads and for processes.
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "common/report/csv.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("sampler: what is seen, what is counted, and the hang that is explained") {
    const Pictures data(96, 100);
    const std::string csv =
        std::filesystem::temp_directory_path() / ("sampler" + std::to_string(getpid()) + ".csv");
    const std::pair<const char*, int> ways[] = {
        {"--ranks", 1}, {"--ranks", 3}, {"--ranks", 8}, {"--processes", 3}};
    for (const auto& [how, ranks] : ways) {
        CAPTURE(how, ranks);
        const ChildResult run =
            run_command({SAMPLER_PROGRAM, "--quick", how, std::to_string(ranks), "--data",
                         data.folder(), "--batch", "4", "--csv", csv});
        CAPTURE(run.output);
        REQUIRE(run.exit_code == 0);
        const Csv file = read_csv(csv);
        REQUIRE(file.rows.size() == 3);
        REQUIRE(file.number(0, "seen") == 96);
        REQUIRE(file.number(0, "missed") == 0);
        REQUIRE(file.number(0, "steps") == (96 / ranks + 3) / 4);
        REQUIRE(file.number(1, "steps") == 24);
        REQUIRE(file.number(1, "twice") == (ranks == 1 ? 0 : 96));
        REQUIRE((file.number(2, "missed") > 0) == (ranks > 1));
        // 10 W + 1 pictures: padded to 11 W.
        const std::string pictures = std::to_string(10 * ranks + 1);
        REQUIRE(count(run.output, "The accuracy on " + pictures + " test pictures") == 1);
        const std::string counted = std::to_string(11 * ranks);
        REQUIRE(std::regex_search(run.output, std::regex("\npadded +" + counted + " ")));
        REQUIRE(std::regex_search(run.output, std::regex("\nunpadded +" + pictures + " ")));
        REQUIRE(count(run.output, "Rank 0 has one batch more than the others") ==
                (ranks == 1 ? 0 : 1));
        REQUIRE(
            count(run.output,
                  "in operation 4, all_reduce average of 1000 float (\"gradients of batch 4\"); "
                  "rank") == (ranks == 1 ? 0 : 1));
    }
    std::filesystem::remove(csv);
}

TEST_CASE("sampler: bad input in one sentence") {
    const ChildResult run = run_command({SAMPLER_PROGRAM, "--batch", "0"});
    REQUIRE(run.exit_code == 2);
    REQUIRE(run.output == "error: --batch needs a whole number from 1 to 256, not '0'.\n");
}

}  // namespace ddp::test
