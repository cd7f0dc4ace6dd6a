// The chapter's program: its table and its messages are read back.
#include "tests/support/program.hpp"

#include <chrono>
#include <future>
#include <iostream>

#include "05_ranks/coordinator/connection.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

const Program program(RANKS_PROGRAM);

// Runs it as `"$0" --quick` and these words of a shell.
ChildResult in_shell(const std::string& words) {
    return run_command({"bash", "-c", "\"$0\" --quick " + words, RANKS_PROGRAM});
}

}  // namespace

TEST_CASE("ranks: a table of all ranks, a rank that throws, and a new run") {
    for (const char* how : {"--ranks", "--processes"})
        for (const int ranks : {1, 2, 3}) {
            CAPTURE(how, ranks);
            const ProgramRun run = program.run({how, std::to_string(ranks)});
            REQUIRE(run.count("Who is who") == 1);
            const std::string last = "rank " + std::to_string(ranks - 1);
            REQUIRE(has(run.output, last));
            REQUIRE(has(run.output, ": it has thrown an exception"));
            REQUIRE(has(run.output, "The next run has begun anew, and all " +
                                        std::to_string(ranks) + " ranks have met."));
        }
}

TEST_CASE("ranks: what makes no sense is refused in one sentence") {
    REQUIRE(has(program.refusal({"--link", "1MB/s,1ms"}), "this chapter computes nothing"));
}

// Rank 0 speaks for all, but it cannot speak for one that does not know that it is another.
TEST_CASE("ranks: wrong variables are named by the process that has them") {
    const auto refused = [](const Words& variables) {
        const ChildResult result =
            run_command({RANKS_PROGRAM, "--quick"}, variables + Words{"MASTER_ADDR=localhost"});
        CAPTURE(result.output);
        REQUIRE(result.exit_code == 2);
        REQUIRE(count(result.output, "\n") == 1);
        return result.output;
    };
    const std::string port = "MASTER_PORT=29500";
    for (const std::string rank : {"2", "-1", "x", "5", ""})
        REQUIRE(refused({"RANK=" + rank, "WORLD_SIZE=2", port}) ==
                "error: The environment variable RANK is '" + rank +
                    "'; it must be a whole number from 0 to 1.\n");
    REQUIRE(has(refused({"RANK=1", "WORLD_SIZE=abc", port}), "WORLD_SIZE is 'abc'"));
    REQUIRE(has(refused({"RANK=1", "WORLD_SIZE=2", "MASTER_PORT=x"}), "MASTER_PORT is 'x'"));
    REQUIRE(has(refused({"WORLD_SIZE=2", port}), "RANK is not set"));
    // What is wrong with the options, rank 0 says for all.
    const Words rank_1{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=localhost", port};
    const ChildResult silent = run_command({RANKS_PROGRAM, "--timeout", "x"}, rank_1);
    REQUIRE(silent.exit_code == 2);
    REQUIRE(silent.output.empty());
}

TEST_CASE("ranks: two jobs started by hand at one port do not take each other's ranks") {
    const std::uint16_t port = port_of(listen_at("127.0.0.1", 0));
    const auto started = [&](const std::string& rank, const std::string& seconds) {
        return std::async(std::launch::async, [=] {
            return run_command({RANKS_PROGRAM, "--quick", "--timeout", seconds},
                               {"RANK=" + rank, "WORLD_SIZE=2", "MASTER_ADDR=localhost",
                                "MASTER_PORT=" + std::to_string(port)});
        });
    };
    auto rank_1 = started("1", "11"), rank_0 = started("0", "10");
    while (connect_to("127.0.0.1", port).number() < 0)
        REQUIRE(rank_0.wait_for(std::chrono::milliseconds(10)) == std::future_status::timeout);
    REQUIRE(connect_to("127.0.0.2", port).number() < 0);  // nobody comes from a network
    const ChildResult alone = rank_0.get(), refused = rank_1.get();
    CAPTURE(alone.output, refused.output);
    REQUIRE(alone.exit_code == 1);
    REQUIRE(has(alone.output, "error: rank 0 waited for rank 1 at port "));
    REQUIRE(refused.exit_code == 1);
    REQUIRE(has(refused.output, ": another job meets here: "));
}

TEST_CASE("ranks: output that is lost is a failure") {
    for (const std::string how : {"--ranks 2", "--processes 2", "--help"}) {
        const ChildResult result = in_shell(how + " >/dev/full");
        CAPTURE(how, result.output);
        REQUIRE(result.exit_code == 1);
        REQUIRE(result.output == "error: the output could not be written: is the disk full?\n");
    }
}

TEST_CASE("ranks: they meet without stdin, stdout or stderr") {
    for (const auto& [closed, is_shown] :
         {std::pair{"<&-", true}, {">&-", false}, {"2>&-", true}, {"<&- >&- 2>&-", false}})
        for (const std::string how : {"--ranks 2 ", "--processes 2 "}) {
            const ChildResult result = in_shell(how + closed);
            CAPTURE(how, closed, result.output);
            REQUIRE(result.exit_code == 0);
            REQUIRE(has(result.output, "have met.") == is_shown);
        }
}

TEST_CASE("ranks: with too few threads they end in a sentence, and none waits for another") {
    if (!user_limits_count()) {
        std::cout << "SKIPPED: a limit of threads (not root, or no setpriv)" << std::endl;
        return;
    }
    int sentences = 0;
    for (int threads = 2; threads <= 8; threads++) {
        const ChildResult result = run_limited(threads, {RANKS_PROGRAM, "--quick", "--ranks", "4"});
        CAPTURE(threads, result.output);
        if (result.exit_code == 0)
            continue;
        REQUIRE(result.exit_code == 1);
        REQUIRE(has(result.output, "error: the system refuses this program another thread"));
        sentences++;
    }
    REQUIRE(sentences >= 3);
}

}  // namespace ddp::test
