// The chapter's program: its tables are read back, and what makes no sense is refused.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <sstream>

#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

struct Accumulation : Pictures, Program {
    Accumulation() : Pictures(200, 30), Program(ACCUMULATION_PROGRAM, {"--data", folder()}) {}
};

using Numbers = std::vector<double>;

// Returns the numbers of the first row called `name` behind `title`.
Numbers row(const std::string& output, const std::string& title, const std::string& name) {
    return numbers_of(table_row(output, name, title));
}

}  // namespace

TEST_CASE("gradient_accumulation: the tables hold what is computed by hand") {
    const Accumulation accumulation;
    const ProgramRun run =
        accumulation.run({"--quick", "--batch", "100", "--micro-batch", "100,50,30"});
    const std::string& output = run.output;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);)
        REQUIRE(std::count_if(line.begin(), line.end(),
                              [](char byte) { return (byte & 0xC0) != 0x80; }) <= 100);

    const std::string each = "Two houses, a step for each";
    REQUIRE(row(output, each, "house 1: backward") == Numbers{0, 0, 0, -180, -60, -30});
    REQUIRE(row(output, each, "step") == Numbers{0.18, 0.06, 0.03, -180, -60, -30});
    REQUIRE(row(output, each, "zero") == Numbers{0.18, 0.06, 0.03});
    REQUIRE(row(output, each, "house 2: backward") ==
            Numbers{0.18, 0.06, 0.03, -109.5, -43.8, -21.9});
    const std::string both = "The same houses accumulated";
    REQUIRE(row(output, both, "house 1, loss / 2: backward") == Numbers{0, 0, 0, -90, -30, -15});
    REQUIRE(row(output, both, "house 2, loss / 2: backward") == Numbers{0, 0, 0, -150, -54, -27});
    REQUIRE(row(output, both, "step 1") == Numbers{0.15, 0.054, 0.027, -150, -54, -27});
    REQUIRE(row(output, both, "zero") == Numbers{0.15, 0.054, 0.027});
    const Numbers right = row(output, both, "step 2");
    const Numbers wrong = row(output, "A mistake", "step 2");
    REQUIRE(right.size() == 6);
    REQUIRE(wrong.size() == 6);
    for (std::size_t i = 3; i < 6; i++)  // the first step's gradient is in it once more
        REQUIRE(wrong[i] == Approx(right[i] + row(output, both, "step 1")[i]).margin(2e-4));

    const std::string one = "One step for two houses";
    REQUIRE(row(output, one, "a batch of two") == Numbers{-150, -54, -27, 0.15, 0.054, 0.027});
    REQUIRE(row(output, one, "two of one, loss / 2") == row(output, one, "a batch of two"));
    REQUIRE(row(output, one, "two of one, the sum") == Numbers{-300, -108, -54, 0.3, 0.108, 0.054});
    REQUIRE(row(output, one, "the sum, half the rate") ==
            Numbers{-300, -108, -54, 0.15, 0.054, 0.027});

    const Numbers last = row(output, "Seven houses", "house 7, loss / 1");
    const Numbers third = row(output, "Seven houses", "house 7, loss / 3: wrong");
    REQUIRE(last.size() == 3);
    REQUIRE(third.size() == 3);
    for (std::size_t i = 0; i < 3; i++)
        REQUIRE(third[i] == Approx(last[i] / 3).margin(1e-4));
    const Numbers whole = row(output, "A batch of seven", "one batch of seven");
    const Numbers weighted = row(output, "A batch of seven", "means times 3/7, 3/7, 1/7");
    const Numbers unweighted = row(output, "A batch of seven", "means times 1/3 each: wrong");
    REQUIRE(whole.size() == 3);
    for (std::size_t i = 0; i < 3; i++) {
        REQUIRE(weighted[i] == Approx(whole[i]).margin(2e-4));
        REQUIRE(std::abs(unweighted[i] - whole[i]) > 0.01);
    }

    const Csv& path = run.csv;
    REQUIRE(path.rows.size() == 201 + 101 + 101);  // two steps a pass, one, and one
    REQUIRE(path.text(0, "way") == "a step for each house");
    REQUIRE(path.number(0, "loss") == 184.5);
    REQUIRE(path.number(1, "houses") == 1);
    REQUIRE(path.number(1, "w1") == Approx(0.18));
    REQUIRE(path.number(200, "step") == 200);
    REQUIRE(path.number(200, "houses") == 200);
    REQUIRE(path.number(301, "step") == 100);
    REQUIRE(path.number(301, "houses") == 200);
    REQUIRE(path.number(202, "w1") == Approx(0.15));
    REQUIRE(path.number(303, "w1") == Approx(0.3));
}

TEST_CASE("gradient_accumulation: smaller micro-batches take less memory, and only activations") {
    const Accumulation accumulation;
    const ProgramRun run = accumulation.run({"--quick", "--passes", "2", "--batch", "16"});
    std::istringstream lines(run.output.substr(run.output.find("Memory of a step")));
    std::vector<std::string> sizes, parameters;
    std::vector<double> activations;
    for (std::string line; std::getline(lines, line) && !line.empty();) {
        std::istringstream cells(line);
        std::string size, bytes[4], units[4];  // parameters, gradients, optimizer, activations
        cells >> size;
        for (int i = 0; i < 4; i++)
            cells >> bytes[i] >> units[i];
        if (!cells || !units[0].ends_with("iB"))
            continue;
        sizes.push_back(size);
        parameters.push_back(bytes[0] + units[0]);
        REQUIRE(bytes[1] + units[1] == parameters.back());
        REQUIRE(bytes[2] == "0");
        activations.push_back(std::stod(bytes[3]) * (units[3] == "MiB" ? 1024 : 1));
    }
    REQUIRE(sizes == std::vector<std::string>{"16", "8", "4", "2", "1"});
    for (std::size_t i = 1; i < 4; i++) {
        REQUIRE(parameters[i] == parameters[0]);
        REQUIRE(activations[i] == Approx(activations[i - 1] / 2).epsilon(0.01));
    }
}

TEST_CASE(
    "gradient_accumulation: a batch that does not fit into a small device, in micro-batches") {
#if defined(DDP_CUDA)
    std::cout << "SKIPPED: a small device (a GPU's memory is not a setting)\n";
    return;
#endif
    const Pictures pictures(512, 30);
    const Program small("/usr/bin/env", {"CUDA_ON_CPU=memory=2", ACCUMULATION_PROGRAM, "--quick",
                                         "--passes", "2", "--data", pictures.folder()});
    const ChildResult whole = small.call({"--micro-batch", "512"});
    REQUIRE(whole.exit_code == 1);
    REQUIRE(has(whole.output, "out of memory"));
    REQUIRE(has(whole.output, "asked for 1605632 bytes"));
    REQUIRE(has(whole.output, "of 2097152 are in use"));
    REQUIRE(has(small.run({"--micro-batch", "64"}).output, " 1.1 MiB\n"));
}

TEST_CASE("gradient_accumulation: the same seed gives the same digits") {
    const Accumulation accumulation;
    const auto digits = [&](const std::string& seed) {
        std::istringstream lines(accumulation
                                     .run({"--quick", "--passes", "20", "--batch", "16",
                                           "--micro-batch", "16,3", "--seed", seed})
                                     .output);
        std::string result;
        for (std::string line; std::getline(lines, line); result += line + "\n")
            if (line.ends_with(" ms") || line.ends_with(" us") || line.ends_with(" s")) {
                line.erase(line.rfind("  "));  // the time, other in every run
                line.erase(line.find_last_not_of(' ') + 1);
            }
        return result;
    };
    const std::string once = digits("5");
    REQUIRE(once.size() > 1000);
    REQUIRE(once == digits("5"));
    REQUIRE(once != digits("6"));
}

TEST_CASE("gradient_accumulation: what makes no sense is refused in one sentence") {
    const Accumulation accumulation;
    REQUIRE(has(accumulation.refusal({"--micro-batch", "0"}), "--micro-batch"));
    REQUIRE(accumulation.refusal({"--batch", "64", "--micro-batch", "32,65"}) ==
            "error: --micro-batch 65 is more than a batch of 64 has: take a smaller one.\n");
    REQUIRE(accumulation.refusal({"--batch", "0"}) ==
            "error: --batch needs a whole number from 1 to 60000, not '0'.\n");
    REQUIRE(accumulation.refusal({"--ranks", "2"}) ==
            "error: --ranks makes no sense here: this chapter computes on one device; ranks begin "
            "in 05_ranks.\n");
    REQUIRE(has(accumulation.refusal({"--data", "/nonexistent"}, 1), "was not found"));
    REQUIRE(accumulation.refusal({"--batch", "201"}) ==
            "error: --batch 201 is more than the 200 samples in the data set: take fewer.\n");
}

TEST_CASE("gradient_accumulation: a sum needs steps of half the length") {
    const Accumulation accumulation;
    const auto run_with = [&](const std::string& learning_rate) {
        return accumulation.call({"--quick", "--passes", "40", "--batch", "8", "--micro-batch", "4",
                                  "--learning-rate", learning_rate});
    };
    const std::string passes = "After 40 passes over the two houses";
    // The mean's steps are too long from 2 / 70.93 = 0.0282 on, the sum's from half of that:
    // 70.93 is the larger curvature of the loss of both houses.
    const ChildResult none = run_with("0.0138");
    REQUIRE(none.exit_code == 0);
    REQUIRE(!has(none.output, "diverges"));
    const ChildResult sum = run_with("0.017");
    REQUIRE(sum.exit_code == 0);
    REQUIRE(row(sum.output, passes, "one for both, the mean").size() == 5);
    REQUIRE(table_row(sum.output, "one for both, the sum", passes).ends_with("diverges"));
    REQUIRE(count(sum.output, "diverges") == 1);
    const ChildResult all = run_with("1");
    REQUIRE(all.exit_code == 1);
    REQUIRE(has(all.output, "error: all three descents diverge: try a smaller --learning-rate\n"));
}

}  // namespace ddp::test
