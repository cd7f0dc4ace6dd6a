// The chapter's program on a small data set of our own: what it prints and writes, that a seed
// decides every bit, and how it refuses what makes no sense.
#include "tests/support/program.hpp"
#include "common/data/fashion_mnist.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

struct Network : Pictures, Program {
    Network() : Pictures(200, 30), Program(NETWORK_PROGRAM, {"--quick", "--data", folder()}) {}
};

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

}  // namespace

TEST_CASE("network: a network that has hardly learned mistakes classes, and says which most") {
    const Network network;
    const ProgramRun run =
        network.run({"--epochs", "1", "--batch", "100", "--learning-rate", "1e-6"});
    int pictures = 0, right = 0;
    for (std::size_t actual = 0; actual < fashion_mnist_classes.size(); actual++) {
        const auto cells =
            words_of(table_row(run.output, std::string(fashion_mnist_classes[actual]) + " (" +
                                               std::to_string(actual) + ")"));
        REQUIRE(cells.size() == 10 + 2);  // and how many are right, in percent
        for (std::size_t taken_for = 0; taken_for < 10; taken_for++)
            pictures += std::stoi(cells[taken_for]);
        right += std::stoi(cells[actual]);
    }
    REQUIRE(pictures == 30);
    const std::size_t accuracy = run.output.rfind("test accuracy ");
    REQUIRE(std::stod(run.output.substr(accuracy + 14)) == Approx(right / 30.0).margin(6e-4));
    REQUIRE(has(run.output, "Most often confused: "));
    // The same counts are in the file behind the heat map.
    const Csv confusion = run.beside("confusion");
    REQUIRE(confusion.rows.size() == 100);
    double counted = 0, on_diagonal = 0;
    for (std::size_t i = 0; i < confusion.rows.size(); i++) {
        counted += confusion.number(i, "pictures");
        if (confusion.text(i, "shows") == confusion.text(i, "says"))
            on_diagonal += confusion.number(i, "pictures");
    }
    REQUIRE(counted == pictures);
    REQUIRE(on_diagonal == right);
    // Each picture of a mistake shows another class than the network says.
    REQUIRE(has(run.output, "The first pictures that it gets wrong"));
    const Csv answers = run.beside("pictures");
    int firsts = 0;
    for (std::size_t i = 0; i < answers.rows.size(); i++) {
        firsts += answers.text(i, "row") == "first";
        REQUIRE(answers.text(i, "pixels").size() == 2 * 784);
        REQUIRE(answers.number(i, "probability") >= 0.1);  // the largest of ten
        REQUIRE(answers.number(i, "probability") <= 1);
        if (answers.text(i, "row") == "mistake")
            REQUIRE(answers.text(i, "shows") != answers.text(i, "says"));
    }
    REQUIRE(firsts == 10);
    REQUIRE(answers.rows.size() == 20);
}

TEST_CASE("network: both models learn, and say where the time went") {
    const Network network;
    for (const std::string model : {"mlp", "cnn"}) {
        const std::string trace = (network / "trace.json").string();
        const ProgramRun run =
            network.run({"--model", model, "--epochs", "2", "--batch", "24", "--trace", trace});
        REQUIRE(has(run.output, "test accuracy 1.000\n"));
        for (const char* part :
             {"loading", "forward linear", "backward to linear", "optimizer", "Memory: ",
              "epoch 2  loss ", "T-shirt/top (0)", "No sample was taken for one of another class.",
              "times as long as forward", "a copy of 16 MiB from pinned memory", "gathered ahead"})
            REQUIRE(has(run.output, part));
        REQUIRE(has(run.output, model == "mlp" ? "The mlp has 1,863,690 parameters.\n"
                                               : "The cnn has 50,378 parameters.\n"));
        const Csv& curve = run.csv;
        REQUIRE(curve.rows.size() == 2);
        REQUIRE(curve.number(1, "epoch") == 2);
        REQUIRE(curve.number(1, "step") == 18);
        REQUIRE(curve.number(1, "loss") < curve.number(0, "loss"));
        REQUIRE(curve.number(1, "test_accuracy") == 1);
        REQUIRE(has(contents(trace), "epoch 2"));
        require_whole_steps(run.beside("profile"));
        REQUIRE(!has(run.output, "The first pictures that it gets wrong"));
        REQUIRE(run.beside("pictures").rows.size() == 10);
        const Csv weights = run.beside("weights");
        REQUIRE(weights.rows.size() == 24);
        REQUIRE(weights.number(0, "width") == (model == "mlp" ? 28 : 3));
        const std::string first = weights.text(0, "weights");
        REQUIRE(first.size() == 2 * (model == "mlp" ? 784 : 9));
        REQUIRE((has(first, "ff") || has(first, "01")));  // the largest is at an end of the scale
    }
}

TEST_CASE("network: the seed decides every digit") {
    const Network network;
    const auto losses = [&](const std::string& seed) {
        const Csv curve = network.run({"--epochs", "2", "--batch", "24", "--seed", seed}).csv;
        return curve.text(0, "loss") + " " + curve.text(1, "loss");
    };
    const std::string once = losses("5");
    REQUIRE(once == losses("5"));
    REQUIRE(once != losses("6"));
}

TEST_CASE("network: what makes no sense is refused in one sentence") {
    const Network network;
    REQUIRE(network.refusal({"--batch", "0"}) ==
            "error: --batch needs a whole number from 1 to 60000, not '0'.\n");
    REQUIRE(network.refusal({"--batch", "201"}) ==
            "error: --batch 201 is more than the 200 samples in the data set: take fewer.\n");
    REQUIRE(network.refusal({"--learning-rate", "nan"}) ==
            "error: --learning-rate needs a number from 1e-12 to 1e+06, not 'nan'.\n");
    REQUIRE(network.refusal({"--ranks", "2"}) ==
            "error: --ranks makes no sense here: this chapter computes on one device; ranks begin "
            "in 05_ranks.\n");
    REQUIRE(has(network.refusal({"--model", "gpt"}), "--model"));
    REQUIRE(has(network.refusal({"--data", "/nonexistent"}, 1), "was not found"));
    std::filesystem::resize_file(network / "train-images-idx3-ubyte", 5000);
    REQUIRE(has(network.refusal({}, 1), "train-images-idx3-ubyte"));
}

TEST_CASE("network: a loss that is no longer a number ends the run and names the step") {
    const Network network;
    const std::string refusal =
        network.refusal({"--batch", "24", "--learning-rate", "1e6", "--epochs", "2"}, 1);
    REQUIRE(refusal.starts_with("error: the loss is no longer a number at step "));
    REQUIRE(refusal.ends_with(": the steps are too long; try a smaller --learning-rate\n"));
    const int step = std::stoi(refusal.substr(refusal.find("step ") + 5));
    REQUIRE(step >= 2);  // before the first step all is well
    REQUIRE(step <= 18);
}

}  // namespace ddp::test
