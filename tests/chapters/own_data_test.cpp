// The chapters' programs on a data set of one's own: pictures of another size, and a table.
#include <fstream>

#include "tests/chapters/support/pictures.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace ddp::test {
namespace {

Program program(const std::string& name) {
    return Program(std::string(PROGRAMS) + "/" + name);
}

// Four columns, three classes: the largest of the first three columns says which.
struct OwnTable {
    explicit OwnTable(int rows) {
        std::ofstream file(path());
        file << "red,green,blue,constant,label\n";
        for (int i = 0; i < rows; i++) {
            float values[3];
            for (int c = 0; c < 3; c++)
                values[c] = static_cast<float>((i * 37 + c * 101 + i * c * 13) % 89) / 10;
            const auto largest = std::max_element(values, values + 3) - values;
            file << values[0] << "," << values[1] << "," << values[2] << ",4.5," << largest << "\n";
        }
    }
    std::string path() const { return (folder / "own.csv").string(); }
    TemporaryFolder folder;
};

}  // namespace

TEST_CASE("own data: pictures of 13 x 22 pixels in five classes") {
    const Pictures pictures(600, 200, {.height = 13, .width = 22, .classes = 5});
    const std::string data = pictures.folder();
    for (const char* model : {"mlp", "cnn"}) {
        const ProgramRun run =
            program("network").run({"--quick", "--data", data, "--model", model, "--batch", "20"});
        CAPTURE(model);
        REQUIRE(run.count("class 4 (4)") == 1);
        REQUIRE(run.csv.number(run.csv.rows.size() - 1, "test_accuracy") > 0.9);
    }
    program("gradient_accumulation").run({"--quick", "--data", data, "--batch", "100"});
    for (const char* name : {"data_parallel", "sampler", "async", "overlap"})
        program(name).run({"--quick", "--ranks", "2", "--data", data, "--batch", "20"});
    program("recipe").run({"--quick", "--ranks", "2", "--data", data});
    REQUIRE(program("checkpoint_failover")
                .run({"--train", "--ranks", "2", "--data", data, "--batch", "20"})
                .count("epoch 2  test accuracy 1.000") == 1);
}

TEST_CASE("own data: a table") {
    const OwnTable table(1000);
    const Words data{"--quick", "--data", table.path(), "--batch", "20"};
    const ProgramRun run = program("network").run(data + Words{"--learning-rate", "0.1"});
    REQUIRE(run.csv.number(run.csv.rows.size() - 1, "test_accuracy") > 0.8);
    const std::string about = "own.csv: the label is in column 5, 'label': 3 classes, 0 to 2\n";
    REQUIRE(run.count(about) == 1);
    for (const char* name : {"data_parallel", "sampler", "async", "overlap"})
        REQUIRE(program(name).run(data + Words{"--processes", "2"}).count(about) == 1);
    program("recipe").run({"--quick", "--ranks", "2", "--data", table.path()});
    // What needs pictures says so.
    const std::string no_cnn =
        "--model cnn needs pictures, and --data is a table: take --model mlp.\n";
    REQUIRE(program("network").refusal(data + Words{"--model", "cnn"}) == "error: " + no_cnn);
    REQUIRE(has(program("overlap").call(data + Words{"--ranks", "2", "--model", "cnn"}).output,
                ": " + no_cnn));  // either rank may be the first to say so
    REQUIRE(program("gradient_accumulation").refusal({"--data", table.path()}) ==
            "error: this chapter's --data takes pictures; 03_network takes a table, too.\n");
    REQUIRE(program("checkpoint_failover")
                .refusal({"--train", "--ranks", "2", "--data", table.path()}) ==
            "error: this training mirrors its --data: it needs pictures, and no table.\n");
    REQUIRE(has(program("sharded").call({"--ranks", "2", "--data", table.path()}).output,
                "error: this chapter's --data must have 28 x 28 pixels and at most ten classes."));
    const Pictures flat(50, 20, {.height = 3, .width = 30, .classes = 2});
    REQUIRE(
        has(program("network").refusal({"--model", "cnn", "--data", flat.folder(), "--batch", "5"}),
            "error: --model cnn halves a picture twice, so it needs 4 x 4 pixels at least: take "
            "--model mlp."));
}

}  // namespace ddp::test
