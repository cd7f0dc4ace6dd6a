// The chapter's program on a small data set of our own: what it prints and writes, that a seed
// decides every bit, and how it refuses what makes no sense.
#include <iterator>
#include <sstream>

#include "common/data/fashion_mnist.hpp"
#include "common/report/csv.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

struct Program {
    ChildResult run(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {NETWORK_PROGRAM, "--quick", "--data", data.folder()});
        return run_command(arguments);
    }
    // What it says when it fails; empty if it does not, or not in one line.
    std::string refusal(const std::vector<std::string>& arguments) const {
        const ChildResult result = run(arguments);
        const bool is_one_line =
            result.output.find('\n') == result.output.size() - 1 && result.exit_code > 0;
        return is_one_line ? result.output : "";
    }

    const Pictures data{200, 30};
};

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// Every part of a step takes some time, and together they are the step.
void require_whole_steps(const Csv& profile) {
    REQUIRE(profile.text(0, "part") == "loading");
    double share = 0, seconds = 0;
    for (std::size_t i = 0; i < profile.rows.size(); i++) {
        share += profile.number(i, "share");
        seconds += profile.number(i, "seconds");
    }
    REQUIRE(share == Approx(1));
    REQUIRE(profile.number(0, "seconds") == Approx(profile.number(0, "share") * seconds));
}

// The line of the table that begins with `name`, its cells.
std::vector<std::string> cells_after(const std::string& output, const std::string& name) {
    const std::size_t begin = output.find("\n" + name);
    REQUIRE(begin != std::string::npos);
    std::istringstream line(output.substr(begin + name.size() + 1,
                                          output.find('\n', begin + 1) - begin - name.size() - 1));
    return {std::istream_iterator<std::string>(line), {}};
}

}  // namespace

TEST_CASE("network: a network that has hardly learned mistakes classes, and says which most") {
    const Program program;
    const ChildResult result =
        program.run({"--epochs", "1", "--batch", "100", "--learning-rate", "1e-6"});
    INFO(result.output);
    REQUIRE(result.exit_code == 0);
    int pictures = 0, right = 0;
    for (std::size_t actual = 0; actual < fashion_mnist_classes.size(); actual++) {
        const auto cells = cells_after(result.output, std::string(fashion_mnist_classes[actual]) +
                                                          " (" + std::to_string(actual) + ")");
        REQUIRE(cells.size() == 10 + 2);  // and how many are right, in percent
        for (std::size_t taken_for = 0; taken_for < 10; taken_for++)
            pictures += std::stoi(cells[taken_for]);
        right += std::stoi(cells[actual]);
    }
    REQUIRE(pictures == 30);
    const std::size_t accuracy = result.output.rfind("test accuracy ");
    REQUIRE(std::stod(result.output.substr(accuracy + 14)) == Approx(right / 30.0).margin(6e-4));
    REQUIRE(contains(result.output, "Most often confused: "));
}

TEST_CASE("network: both models learn, and say where the time went") {
    const Program program;
    for (const std::string model : {"mlp", "cnn"}) {
        const std::string csv = (program.data / "curve.csv").string();
        const std::string trace = (program.data / "trace.json").string();
        const ChildResult result = program.run(
            {"--model", model, "--epochs", "3", "--batch", "24", "--csv", csv, "--trace", trace});
        INFO(result.output);
        REQUIRE(result.exit_code == 0);
        REQUIRE(contains(result.output, "test accuracy 1.000\n"));
        for (const char* part :
             {"loading", "forward linear", "backward to linear", "optimizer", "Memory: ",
              "epoch 3  loss ", "T-shirt/top (0)", "No picture was taken for one of another class.",
              "times as long as forward", "a copy of 16 MiB from pinned memory", "gathered ahead"})
            REQUIRE(contains(result.output, part));
        REQUIRE(contains(result.output, model == "mlp" ? "The mlp has 1,863,690 parameters.\n"
                                                       : "The cnn has 50,378 parameters.\n"));
        const Csv curve = read_csv(csv);
        REQUIRE(curve.rows.size() == 3);
        REQUIRE(curve.number(2, "epoch") == 3);
        REQUIRE(curve.number(2, "step") == 27);
        REQUIRE(curve.number(2, "loss") < curve.number(0, "loss"));
        REQUIRE(curve.number(2, "test_accuracy") == 1);
        REQUIRE(contains(contents(trace), "epoch 2"));
        require_whole_steps(read_csv(program.data / "curve_profile.csv"));
    }
}

TEST_CASE("network: the seed decides every digit") {
    const Program program;
    const auto losses = [&](const std::string& seed) {
        const std::string csv = (program.data / "curve.csv").string();
        program.run({"--epochs", "2", "--batch", "24", "--seed", seed, "--csv", csv});
        const Csv curve = read_csv(csv);
        return curve.text(0, "loss") + " " + curve.text(1, "loss");
    };
    const std::string once = losses("5");
    REQUIRE(once == losses("5"));
    REQUIRE(once != losses("6"));
}

TEST_CASE("network: what makes no sense is refused in one sentence") {
    const Program program;
    REQUIRE(program.refusal({"--batch", "0"}) ==
            "error: --batch needs a whole number from 1 to 60000, not '0'.\n");
    REQUIRE(program.refusal({"--batch", "201"}) ==
            "error: the batch is 201 samples; it must be between 1 and the 200 that the data set "
            "has\n");
    REQUIRE(program.refusal({"--learning-rate", "nan"}) ==
            "error: --learning-rate needs a number from 1e-12 to 1e+06, not 'nan'.\n");
    REQUIRE(program.refusal({"--ranks", "2"}) ==
            "error: --ranks makes no sense here: this chapter computes on one device; ranks begin "
            "in chapter 05.\n");
    REQUIRE(contains(program.refusal({"--model", "gpt"}), "--model"));
    REQUIRE(contains(program.refusal({"--data", "/nonexistent"}), "was not found"));
    std::filesystem::resize_file(program.data / "train-images-idx3-ubyte", 5000);
    REQUIRE(contains(program.refusal({}), "train-images-idx3-ubyte"));
}

TEST_CASE("network: a loss that is no longer a number ends the run and names the step") {
    const Program program;
    const std::string refusal =
        program.refusal({"--batch", "24", "--learning-rate", "1e6", "--epochs", "2"});
    REQUIRE(refusal.starts_with("error: the loss is no longer a number at step "));
    REQUIRE(refusal.ends_with(": the steps are too long; try a smaller --learning-rate\n"));
    const int step = std::stoi(refusal.substr(refusal.find("step ") + 5));
    REQUIRE(step >= 2);  // before the first step all is well
    REQUIRE(step <= 18);
}

}  // namespace ddp::test
