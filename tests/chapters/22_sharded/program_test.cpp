// The chapter's program: one hash at four stages, for threads and for processes, and its refusals.
#include <iostream>

#include "tests/chapters/support/jobs.hpp"
#include "tests/chapters/support/pictures.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program program(SHARDED_PROGRAM);

// With so few pictures an epoch of the perceptron ends after five steps: between two of the parts.
void require_parts_of(const std::string& model, const std::string& other) {
    const Pictures data(120, 20);
    const auto train = [&](const std::string& stage, int steps,
                           const std::filesystem::path& folder) {
        const ChildResult result = program.call(
            {"--model", model, "--stage", stage, "--steps", std::to_string(steps), "--ranks", "3",
             "--batch", "8", "--data", data.folder(), "--folder", folder.string()});
        REQUIRE(result.exit_code == 0);
        const std::string done = "done at step " + std::to_string(steps) + ": ";
        REQUIRE(count(result.output, done) == 1);
        return result.output.substr(result.output.find(done) + done.size(), 16);
    };
    const TemporaryFolder folder;
    const std::string whole = train("1", 12, folder / "whole");
    train("3", 5, folder / "parts");
    train("2", 8, folder / "parts");
    REQUIRE(train("3", 12, folder / "parts") == whole);
    const std::string refused =
        program.refusal({"--model", other, "--stage", "3", "--ranks", "3", "--batch", "8", "--data",
                         data.folder(), "--folder", (folder / "parts").string()},
                        1);
    REQUIRE(count(refused, "whose model was " + model + ", and now it is " + other) == 1);
}

}  // namespace

TEST_CASE("sharded program: four stages, one hash, the same for threads and for processes") {
    const Pictures data(120, 20);
    std::string of_threads;
    for (const std::string how : {"--ranks", "--processes"}) {
        if (how == "--processes" && !processes_can_run_kernels(3))
            continue;
        const ProgramRun run =
            program.run({"--data", data.folder(), "--quick", "--batch", "8", how, "3"});
        REQUIRE(run.count("All stages end in the same bits.") == 1);
        REQUIRE(run.csv.rows.size() == 4);
        // Each stage keeps less than the one before.
        for (const char* column : {"parameters", "gradients", "moments"})
            REQUIRE(run.csv.number(3, column) < run.csv.number(0, column));
        // Below the table is a timeline, whose times are those of this run.
        const std::string table = run.output.substr(0, run.output.find("One step of rank 0"));
        if (how == "--ranks")
            of_threads = table;
        REQUIRE(table == of_threads);
        REQUIRE(run.count("with prefetch: ") == 1);
    }
    REQUIRE(nothing_is_left(SHARDED_PROGRAM));
}

TEST_CASE("sharded program: the timeline of a step, if there is something to gather") {
    const Words words{"--model", "transformer", "--quick"};
    const ProgramRun two = program.run(words + Words{"--ranks", "2", "--link", "500MB/s,0us"});
    REQUIRE(two.count("over a link of 500 MB/s") == 1);
    const Csv timeline = two.beside("timeline");
    for (const std::string prefetch : {"on", "off"})
        for (const std::string rank : {"0", "1"})
            for (const std::string what :
                 {"gather root", "gather encoder layer 0", "reduce decoder layer 3",
                  "forward decoder layer 3", "backward encoder layer 0", "optimizer"}) {
                CAPTURE(prefetch, rank, what);
                int found = 0;
                for (std::size_t row = 0; row < timeline.rows.size(); row++)
                    found += timeline.text(row, "overlap") == prefetch &&
                             timeline.text(row, "rank") == rank &&
                             timeline.text(row, "name") == what;
                // A block is gathered again for its backward, and the root stays.
                REQUIRE(found == (what == "gather encoder layer 0" ? 2 : 1));
            }
    REQUIRE(program.run(words + Words{"--ranks", "1"}).count("One rank gathers nothing") == 1);
}

TEST_CASE("sharded program: the hybrid ends in the bits of DDP on two levels, and not on one") {
    const Pictures data(120, 20);
    const Words words{"--data", data.folder(), "--quick", "--batch",
                      "8",      "--hybrid",    "--shape", "3x2"};
    const ProgramRun run = program.run(words);
    REQUIRE(run.count("on two levels, 3 nodes of 2 ranks") == 1);
    REQUIRE(run.count("Both end in the same bits.") == 1);
    REQUIRE(run.csv.rows.size() == 2);
    REQUIRE(program.run(words + Words{"--levels", "1"}).count("Their bits differ") == 1);
}

TEST_CASE("sharded program: a transformer at one stage is the same as among all", "[.long]") {
    const ProgramRun all = program.run({"--model", "transformer", "--quick", "--ranks", "3"});
    REQUIRE(all.count("All stages end in the same bits.") == 1);
    const ProgramRun one =
        program.run({"--model", "transformer", "--quick", "--ranks", "3", "--stage", "2"});
    REQUIRE(one.csv.rows.size() == 1);
    REQUIRE(one.csv.text(0, "hash") == all.csv.text(2, "hash"));
    REQUIRE(all.csv.number(0, "last_loss") < all.csv.number(0, "first_loss"));
}

TEST_CASE("sharded program: clipping is an exception to the one hash, and says so") {
    const Pictures data(120, 20);
    const auto run = [&](const Words& more) {
        return program.run(Words{"--data", data.folder(), "--quick", "--batch", "8", "--ranks", "3",
                                 "--optimizer", "sgd"} +
                           more);
    };
    const ProgramRun clipped = run({"--clip", "0.01"});
    REQUIRE(clipped.count("Clipping is an exception: DDP adds up the norm in another order") == 1);
    REQUIRE(clipped.csv.text(1, "hash") == clipped.csv.text(3, "hash"));
    const ProgramRun free = run({});
    REQUIRE(free.count("exception") == 0);
    REQUIRE(free.csv.text(1, "hash") != clipped.csv.text(1, "hash"));
}

TEST_CASE("sharded program: gathering in bfloat16 is an exception to the one hash, and says so",
          "[.long]") {
    const Words words{"--model", "transformer", "--quick", "--ranks", "3"};
    const ProgramRun rounded = program.run(words + Words{"--bfloat16"});
    REQUIRE(rounded.count("Stages 0 to 2 end in the same bits.") == 1);
    REQUIRE(rounded.count("Gathering in bfloat16 is an exception") == 1);
    const ProgramRun exact = program.run(words);
    REQUIRE(exact.count("exception") == 0);
    REQUIRE(rounded.csv.text(2, "hash") == exact.csv.text(2, "hash"));
    REQUIRE(rounded.csv.text(3, "hash") != exact.csv.text(3, "hash"));
    // The bill has the arrays for it: on one rank, two bytes for a chunk and for all of them.
    const Csv of_rounded = rounded.beside("bill"), of_exact = exact.beside("bill");
    for (std::size_t row = 0; row < of_exact.rows.size(); row++) {
        CAPTURE(row);
        const double more = of_rounded.number(row, "gathered") - of_exact.number(row, "gathered");
        REQUIRE((more > 0) == (of_exact.number(row, "stage") == 3));
        REQUIRE(of_rounded.number(row, "communicator") - of_exact.number(row, "communicator") <
                2000);
        if (of_exact.number(row, "stage") == 3 && of_exact.number(row, "ranks") == 1)
            REQUIRE(more == Approx(of_exact.number(row, "gathered") / 2).epsilon(0.02));
    }
    // What stage 3 sends more than DDP, it saves in this way.
    REQUIRE(exact.csv.number(3, "received_per_step") >
            1.3 * exact.csv.number(0, "received_per_step"));
    REQUIRE(rounded.csv.number(3, "received_per_step") < exact.csv.number(0, "received_per_step"));
    // It learns as the exact one does.
    REQUIRE(rounded.csv.number(3, "last_loss") ==
            Approx(exact.csv.number(3, "last_loss")).epsilon(0.02));
}

TEST_CASE("sharded program: parts of a training end where the whole does") {
    require_parts_of("mlp", "transformer");
}

TEST_CASE("sharded program: parts of a transformer's training end where the whole does",
          "[.long]") {
    require_parts_of("transformer", "mlp");
}

// A bill with an unwelcome surprise would fail here, too: the device has no room for one.
TEST_CASE("sharded program: a transformer that does not fit is trained at stage 3") {
    if (!processes_can_run_kernels(4))
        return;
#if defined(DDP_CUDA)
    std::cout << "SKIPPED: a small device (a GPU's memory is not a setting)\n";
    return;
#endif
    const Program small("/usr/bin/env", {"CUDA_ON_CPU=memory=24", SHARDED_PROGRAM, "--model",
                                         "transformer", "--quick", "--processes", "4"});
    const ChildResult replicated = small.call({"--stage", "0"});
    REQUIRE(replicated.exit_code == 1);
    REQUIRE(count(replicated.output, "out of memory") == 1);
    REQUIRE(count(replicated.output, "of 25165824 are in use") == 1);
    const ProgramRun sharded = small.run({"--stage", "3"});
    const ProgramRun large =
        program.run({"--model", "transformer", "--quick", "--ranks", "4", "--stage", "0"});
    REQUIRE(sharded.csv.text(0, "hash") == large.csv.text(0, "hash"));
    REQUIRE(nothing_is_left(SHARDED_PROGRAM));
}

TEST_CASE("sharded program: bad input in one sentence") {
    REQUIRE(count(program.refusal({"--trace", "x.json"}), "a step is drawn") == 1);
    REQUIRE(count(program.refusal({"--shape", "2x3", "--ranks", "4"}),
                  "has 6 ranks, and there are 4") == 1);
    REQUIRE(count(program.refusal({"--data", "/nonexistent"}, 1), "was not found") == 1);
    REQUIRE(count(program.refusal({"--hybrid", "--folder", "x"}), "does not support checkpoints") ==
            1);
    REQUIRE(count(program.refusal({"--failover", "--stage", "0"}), "need a sharded stage") == 1);
    REQUIRE(count(program.refusal({"--bfloat16", "--stage", "2"}), "needs stage 3") == 1);
}

}  // namespace ddp::test
