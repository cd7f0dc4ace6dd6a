// The rules of a run: messages of ranks, given to a coordinator one by one.
#include "05_ranks/coordinator/coordinator.hpp"

#include <map>
#include <regex>
#include <thread>

#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Kind = Message::Kind;

// A coordinator of `ranks`, and the last message that each of them has received.
struct Ranks {
    std::map<int, Message> heard;
    Coordinator coordinator;

    explicit Ranks(int ranks, double timeout_s = 30, bool can_be_lost = false)
        : coordinator(names(ranks), timeout_s, timeout_s, can_be_lost,
                      [this](int rank, const Message& message) { heard[rank] = message; }) {}

    static std::vector<std::string> names(int ranks) {
        std::vector<std::string> all;
        for (int r = 0; r < ranks; r++)
            all.push_back("R" + std::to_string(r));
        return all;
    }
    void call(int rank, std::uint64_t number, const std::string& operation, std::string part = "",
              std::uint64_t run_id = 1) {
        coordinator.receive(rank, {Kind::call, run_id, number, operation, {std::move(part)}});
    }
    void end(int rank, const std::string& cause = "", std::uint64_t run_id = 1, int awaited = -1) {
        const auto peer = static_cast<std::uint64_t>(awaited);
        const std::string wait = "; R" + std::to_string(rank) + " waited";
        coordinator.receive(rank, {Kind::end, run_id, peer, cause, {wait}});
    }
    // Returns what every rank has received, if that is the same, and forgets it.
    Message heard_by_all(std::size_t ranks) {
        REQUIRE(heard.size() == ranks);
        const Message first = heard.begin()->second;
        for (const auto& [rank, message] : heard)
            REQUIRE(message == first);
        heard.clear();
        return first;
    }
    // Polls for so long, while all ranks but `silent` send heartbeats.
    void poll_for(double seconds, int silent) {
        const auto begin = std::chrono::steady_clock::now();
        const std::chrono::duration<double> length(seconds);
        while (std::chrono::steady_clock::now() - begin < length) {
            for (int r = 0; r < 3; r++)
                if (r != silent)
                    coordinator.receive(r, {});
            wait_and_look(0.02);
        }
    }
    void wait_and_look(double seconds) {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        coordinator.poll();
    }
};

TEST_CASE("a call is over when all ranks have come, in any order") {
    for (int first = 0; first < 5; first++) {
        Ranks ranks(5);
        for (int i = 0; i < 5; i++) {
            REQUIRE(ranks.heard.empty());
            const int rank = (first + 3 * i) % 5;
            ranks.call(rank, 1, "all_gather", "from " + std::to_string(rank));
        }
        const Message gathered = ranks.heard_by_all(5);
        REQUIRE(gathered.kind == Kind::gathered);
        REQUIRE(gathered.parts ==
                std::vector<std::string>{"from 0", "from 1", "from 2", "from 3", "from 4"});
    }
}

TEST_CASE("different calls are named at once") {
    Ranks ranks(3);
    ranks.call(2, 1, "barrier");
    ranks.call(0, 1, "all_gather");
    const Message failed = ranks.heard_by_all(3);
    REQUIRE(failed.kind == Kind::failed);
    REQUIRE(failed.text ==
            "R2 is in barrier (call 1), but R0 is in all_gather (call 1): all ranks "
            "must make the same calls in the same order");
}

TEST_CASE("a rank that has ended cannot be waited for") {
    SECTION("it ends first") {
        Ranks ranks(2);
        ranks.end(0);
        ranks.call(1, 1, "barrier");
        REQUIRE(ranks.heard[1].text ==
                "R1 waits in barrier (call 1) for R0, which has ended its "
                "part of the run: all ranks must make the same calls");
    }
    SECTION("it ends later") {
        Ranks ranks(2);
        ranks.call(1, 1, "barrier");
        ranks.end(0);
        REQUIRE(ranks.heard[1].text.starts_with("R1 waits in barrier (call 1) for R0"));
    }
    SECTION("it has left for good") {
        Ranks ranks(2);
        ranks.coordinator.receive(0, {Kind::goodbye, 0, 0, "", {}});
        ranks.call(1, 1, "barrier");
        REQUIRE(ranks.heard[1].text ==
                "R1 waits in barrier (call 1) for R0, which has left: all "
                "ranks must make the same calls");
    }
}

TEST_CASE("the first cause wins, and the next run starts anew") {
    Ranks ranks(3);
    ranks.call(1, 1, "barrier");
    ranks.end(2, "R2: broken");
    REQUIRE(ranks.heard_by_all(3).text == "R2: broken");
    ranks.end(0, "R0: broken, too");
    ranks.end(1);
    const Message message = ranks.heard_by_all(3);
    REQUIRE(message.kind == Kind::result);
    const RunResult result = RunResult::from(message);
    REQUIRE(result.cause == "R2: broken");
    REQUIRE(result.reporter == 0);
    REQUIRE_FALSE(result.is_last);

    ranks.coordinator.receive(1, {Kind::fail, 1, 0, "too late", {}});  // of the run before
    REQUIRE(ranks.heard.empty());
    for (int r = 0; r < 3; r++)
        ranks.call(r, 1, "barrier", "", 2);
    REQUIRE(ranks.heard_by_all(3).kind == Kind::gathered);
    for (int r = 0; r < 3; r++)
        ranks.end(r, "", 2);
    REQUIRE(RunResult::from(ranks.heard_by_all(3)).cause.empty());
}

TEST_CASE("a rank that does not come is named after the time-out, with its last call") {
    Ranks ranks(3, 1);
    for (int r = 0; r < 3; r++)
        ranks.call(r, 1, "all_gather");
    ranks.heard.clear();
    ranks.call(2, 2, "barrier");
    ranks.coordinator.poll();
    REQUIRE(ranks.heard.empty());
    ranks.call(0, 2, "barrier");
    ranks.wait_and_look(1.2);
    const std::string text = ranks.heard_by_all(3).text;
    CAPTURE(text);
    const std::string begin = "R2 waited ";
    REQUIRE(text.starts_with(begin));
    const double waited = std::stod(text.substr(begin.size()));
    REQUIRE(waited >= 1.2);  // a busy machine wakes us later
    REQUIRE(waited < 30);
    REQUIRE(text.ends_with(
        " s in barrier (call 2) for R1, which did not come (its last call was all_gather "
        "(call 1)): if it is only slow, or the machine is busy, give a longer --timeout"));
}

TEST_CASE("a rank that does not end its part of the run is waited for no longer than in a call") {
    Ranks ranks(3, 1);
    for (int r = 0; r < 3; r++)
        ranks.call(r, 1, "all_gather");
    ranks.heard.clear();
    ranks.end(2);
    ranks.wait_and_look(0.3);
    ranks.end(0);
    REQUIRE(ranks.heard.empty());
    ranks.wait_and_look(0.8);
    const Message failed = ranks.heard_by_all(3);
    REQUIRE(failed.kind == Kind::failed);
    REQUIRE(std::regex_match(
        failed.text,
        std::regex("R2 has ended its part of the run, and waited [0-9.]+ s for R1, which has not "
                   "\\(its last call was all_gather \\(call 1\\)\\): if it is only slow, or the "
                   "machine is busy, give a longer --timeout")));
    ranks.end(1);  // it comes after all, and the run is over
    REQUIRE(RunResult::from(ranks.heard_by_all(3)).cause == failed.text);
}

TEST_CASE("a process that says nothing is stopped, and need not be waited for") {
    Ranks ranks(3, 0.8, true);
    ranks.poll_for(0.7, 1);
    REQUIRE(ranks.heard.empty());
    ranks.poll_for(0.7, 1);
    REQUIRE(std::regex_match(ranks.heard[0].text,
                             std::regex("R1 has said nothing for 1\\.[0-9] s: is it stopped\\?")));
    ranks.end(0);
    ranks.end(2);  // nobody waits for rank 1 any more
    const RunResult result = RunResult::from(ranks.heard[0]);
    REQUIRE(result.is_last);
    REQUIRE(result.reporter == 0);
}

TEST_CASE("a process that lives may work for longer than the time-out, if nobody waits for it") {
    Ranks ranks(3, 0.2, true);
    ranks.poll_for(0.5, -1);
    REQUIRE(ranks.heard.empty());
    // Nor is it silent if the coordinator's own process was stopped.
    ranks.wait_and_look(1.1);
    REQUIRE(ranks.heard.empty());
}

TEST_CASE("a time-out of 0 never comes") {
    Ranks ranks(3, 0, true);
    ranks.call(0, 1, "barrier");
    ranks.poll_for(1.1, 1);
    REQUIRE(ranks.heard.empty());
}

TEST_CASE("a process that is lost ends the run, and all that would follow") {
    Ranks ranks(4, 30, true);
    ranks.call(1, 1, "barrier");
    ranks.coordinator.mark_lost(0, "is gone");
    REQUIRE(ranks.heard[1].text == "R0 is gone");
    ranks.end(1, "", 1, 2);
    ranks.end(2, "", 1, 0);
    ranks.end(3, "", 1, 0);
    const RunResult result = RunResult::from(ranks.heard_by_all(4));
    REQUIRE(result.cause == "R0 is gone; R2 waited");
    REQUIRE(result.reporter == 1);
    REQUIRE(result.is_last);
}

TEST_CASE("a process that does not end a failed run is given up") {
    Ranks ranks(2, 0.05, true);
    ranks.end(0, "R0: broken");
    ranks.wait_and_look(0.06);
    const RunResult result = RunResult::from(ranks.heard[0]);
    REQUIRE(result.cause == "R0: broken");
    REQUIRE(result.is_last);
}

TEST_CASE("if all ranks are given up, rank 0 reports it: the coordinator runs in its process") {
    Ranks ranks(2, 0.05, true);
    ranks.coordinator.mark_lost(1, "is gone");
    ranks.wait_and_look(0.06);
    const RunResult result = RunResult::from(ranks.heard[0]);
    REQUIRE(result.cause == "R1 is gone");
    REQUIRE(result.reporter == 0);
}

}  // namespace
}  // namespace ddp::test
