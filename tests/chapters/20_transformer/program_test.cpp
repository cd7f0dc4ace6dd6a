// The chapter's program: what it prints and writes, under every launcher.
#include <fstream>
#include <sstream>

#include "19_checkpoint_failover/state/checkpoints.hpp"
#include "tests/chapters/support/jobs.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const std::string path = TRANSFORMER_PROGRAM;
const Program program(path);

// A training of some steps.
const Words small{"--train-only", "--sentences", "150",     "--epochs", "2",        "--batch", "25",
                  "--width",      "16",          "--heads", "2",        "--layers", "1"};

std::string text_of_file(const std::filesystem::path& file) {
    std::ifstream stream(file);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("transformer: --quick shows the five mistakes, trains, and leaves a checkpoint") {
    const ProgramRun run = program.run({"--quick"});
    REQUIRE(run.count("Five mistakes that nobody reports") == 1);
    REQUIRE(run.count("The parameters of all 4 ranks are equal to the bit") == 1);
    const std::filesystem::path csv = *run.folder / "run.csv";
    const std::string log = text_of_file(csv.parent_path() / "run.jsonl");
    REQUIRE(log.starts_with("{\"event\":\"start\",\"name\":\"numerals\",\"step\":0}\n"));
    REQUIRE(log.ends_with("{\"event\":\"end\"}\n"));
    REQUIRE(count(log, "{\"event\":\"step\",") == 2);
    REQUIRE(count(log, "{\"event\":\"epoch\",") == 1);
    // --translate uses what the training has left.
    const Words sentence{"--translate", "two hundred one"};
    const ChildResult translated = program.call(sentence + Words{"--csv", csv.string()});
    REQUIRE(translated.exit_code == 0);
    REQUIRE(count(translated.output, "\n") == 1);
    const std::string checkpoints = (csv.parent_path() / "transformer").string();
    REQUIRE(program.call(sentence + Words{"--folder", checkpoints}).output == translated.output);
}

TEST_CASE(
    "transformer: a model that is only a decoder is trained, kept and asked as the other one") {
    const Words only{"--train-only", "--quick", "--decoder-only", "--beam", "2"};
    const ProgramRun run = program.run(only);
    REQUIRE(run.count("The parameters of all 4 ranks are equal to the bit") == 1);
    const std::filesystem::path folder = *run.folder / "transformer";
    const Words kept{"--folder", folder.string()};
    REQUIRE(program.call(kept + Words{"--translate", "two hundred one"}).exit_code == 0);
    REQUIRE(has(program.refusal(Words{"--train-only", "--quick"} + kept, 1),
                "whose model was decoder only"));
}

TEST_CASE("transformer: the bench of uneven tokens says how far the mean of means is off") {
    const Program bench(BENCH_UNEVEN_TOKENS);
    const std::string output = bench.run({"--quick", "--ranks", "3"}).output;
    REQUIRE(count(output, "\nits own tokens  ") == 1);
    REQUIRE(count(output, " 0.0000") == 1);
    REQUIRE(has(bench.refusal({"--ranks", "1"}), "take --ranks 2 or more"));
}

TEST_CASE("transformer: the same bits under every launcher, and a call after its end") {
    const TemporaryFolder folder;
    const auto hash = [&](const Launch& launch, const Words& more) {
        CAPTURE(launch.name);
        return last_hash(run_job(launch, small + more).output);
    };
    const std::string threads = hash({"threads", {path, "--ranks", "3"}, {}}, {});
    for (const Launch& launch : launches_with_kernels(path, 3)) {
        const Words kept{"--folder", (folder / launch.name).string()};
        REQUIRE(hash(launch, kept) == threads);
        REQUIRE(hash({"threads", {path, "--ranks", "2"}, {}}, kept) == threads);
    }
    REQUIRE(nothing_is_left(path));
}

TEST_CASE("transformer: sentences from a file, and bad input in one sentence") {
    const TemporaryFolder folder;
    const std::string pairs = (folder / "pairs.tsv").string();
    {
        std::ofstream file(pairs);
        for (int i = 0; i < 100; i++)
            file << "sentence " << i << "\tfrase " << i << "\n";
    }
    const Words few{"--train-only", "--epochs", "2",        "--batch", "20",      "--width", "16",
                    "--heads",      "2",        "--layers", "1",       "--ranks", "2"};
    const ProgramRun run = program.run(few + Words{"--pairs", pairs});
    REQUIRE(run.count("After epoch ") == 2);
    REQUIRE(run.count("tokens/s  BLEU ") == 2);
    REQUIRE(run.count("\nBLEU ") == 1);
    const auto refused = [&](const Words& words, int status, const std::string& sentence) {
        const std::string refusal = program.refusal(words, status);
        CAPTURE(refusal);
        REQUIRE(has(refusal, sentence));
    };
    refused(few + Words{"--pairs", "/none.tsv"}, 1, "/none.tsv");
    refused(few + Words{"--pairs", "debian", "--data", "/none"}, 1, "./book data translations");
    refused(few + Words{"--heads", "3"}, 2, "--heads 3 does not divide --width 16");
    refused(few + Words{"--sentences", "10"}, 2, "10 pairs that are short enough");
    refused(few + Words{"--sentences", "1"}, 2, "has 1 pair that is short enough, and 20 are");
    refused({"--translate", "one"}, 2, "--translate needs the --folder");
    refused({"--translate", ""}, 2, "--translate needs a sentence, and '' has no word");
    refused({"--translate", " \t"}, 2, "--translate needs a sentence");
    refused({"--translate", "one", "--folder", (folder / "").string()}, 2, "train first");
    {
        std::ofstream file(folder / Checkpoints::file_name(3));
        file << "no checkpoint";
    }
    refused({"--translate", "one", "--folder", (folder / "").string()}, 1, "no checkpoint in");
}

}  // namespace ddp::test
