// The chapter's program: the numbers of the first step, the files behind its pictures, and a
// descent that diverges.
#include "tests/support/program.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("sgd: the tape of the first step has twelve boxes, with the pencil's numbers") {
    const Program sgd(SGD_PROGRAM, {"--quick"});
    const Csv tape = sgd.run().beside("tape");
    REQUIRE(tape.rows.size() == 12);
    const auto box = [&](const std::string& name, const std::string& inputs) {
        for (std::size_t i = 0; i < tape.rows.size(); i++)
            if (tape.text(i, "name") == name && tape.text(i, "inputs") == inputs)
                return i;
        FAIL("no box " << name << " with the inputs '" << inputs << "'");
        return std::size_t{0};
    };
    REQUIRE(tape.number(box("w1", ""), "gradient") == -180);
    REQUIRE(tape.number(box("w2", ""), "gradient") == -60);
    REQUIRE(tape.number(box("b", ""), "gradient") == -30);
    REQUIRE(tape.number(box("multiply", "0 3"), "gradient") == -30);
    REQUIRE(tape.number(box("subtract", "9 2"), "value") == -15);
    REQUIRE(tape.number(box("square", "10"), "value") == 225);
    REQUIRE(tape.text(box("x1", ""), "gradient").empty());  // given, not learned
    for (std::size_t i = 0; i < tape.rows.size(); i++) {
        REQUIRE(tape.number(i, "box") == static_cast<double>(i));
        for (const double input : numbers_of(tape.text(i, "inputs")))
            REQUIRE(input < static_cast<double>(i));  // inputs stand to the left
    }
}

TEST_CASE("sgd: the time line has the host's two spans behind each other, and the stream's") {
    const ProgramRun run = Program(SGD_PROGRAM).run({"--epochs", "40"});
    const Csv line = run.beside("stream");
    REQUIRE(line.rows.size() == 3);
    REQUIRE(line.text(0, "what") == "launch");
    REQUIRE(line.number(0, "end_s") > 0);
    REQUIRE(line.number(1, "begin_s") == line.number(0, "end_s"));
    REQUIRE(line.number(1, "end_s") > line.number(1, "begin_s"));
    REQUIRE(line.number(2, "end_s") == line.number(1, "end_s"));
    // After waiting, the host has what its own loop has computed.
    const double right = numbers_of(table_row(run.output, "a loop on the host")).front();
    REQUIRE(right > 2);
    REQUIRE(line.number(1, "w1") == Approx(right).margin(1e-4));
}

TEST_CASE("sgd: steps that are too long end the run with a sentence that names the step") {
    const Program sgd(SGD_PROGRAM);
    REQUIRE(sgd.refusal({"--ranks", "2"}) ==
            "error: --ranks makes no sense here: this chapter computes on one device; ranks begin "
            "in 05_ranks.\n");
    const ChildResult run = sgd.call({"--learning-rate", "0.05"});
    REQUIRE(run.exit_code == 1);
    REQUIRE(has(run.output, "error: the loss is no longer a number at step 84: "));
}

#if !defined(DDP_CUDA)
// On a CPU device memory is a file without a name.
TEST_CASE("sgd: a limit on files ends it in a sentence") {
    const ChildResult result =
        run_command({"bash", "-c", "ulimit -f 1; exec \"$0\" --quick", SGD_PROGRAM});
    CAPTURE(result.output);
    REQUIRE(result.exit_code == 1);
    REQUIRE(count(result.output, "error: ") == 1);
    REQUIRE(has(result.output, "but the system gives no more (File too large)"));
}
#endif

}  // namespace ddp::test
