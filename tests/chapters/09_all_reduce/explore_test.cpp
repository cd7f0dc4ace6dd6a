// The protocols of 06_messages to 13_async hold in every order; and each of them fails without
// a release, an acquire or a wait that it needs.
#include "tools/explore/each_call.hpp"

#include <algorithm>
#include <set>

#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using cuda_on_cpu::ExploredFailure;

constexpr double seconds = 30;

// Returns whether a protocol needs its flags. A server's workers, the leaves of a tree and the root
// of a broadcast have their data when they begin, so the call itself has posted it. With two ranks
// nobody else posts in a chain, nor with up to three in a tree. The call of a FIFO asks for slots,
// which do no harm where nobody has asked for them.
bool is_needed(const ExploredCase& explored, const Mistake& mistake) {
    const std::string& name = explored.algorithm;
    const bool has_posts_to_spare = name == "server" || name == "linear" || name == "all at once" ||
                                    name == "one-shot+linear" ||
                                    (name == "chain" && explored.ranks == 2) ||
                                    (name == "reduce+broadcast" && explored.ranks < 4);
    return !(mistake.flag == FlagKind::post && has_posts_to_spare) &&
           !(mistake.flag == FlagKind::call && name == "FIFO");
}

}  // namespace

TEST_CASE("no order of flags makes a protocol fail") {
    for (const ExploredCase& explored : explored_cases()) {
        CAPTURE(explored.algorithm, explored.ranks);
        const ExploredResult result = explore_case(explored, std::nullopt, seconds);
        REQUIRE(result.failure == "");
        REQUIRE(result.exploration.is_complete);
        REQUIRE(result.exploration.executions >= 1);
        REQUIRE(result.exploration.steps >= 4);
    }
}

TEST_CASE("with one thing taken away each protocol fails") {
    int failures = 0;
    for (const ExploredCase& explored : explored_cases())
        for (const Mistake& mistake : all_mistakes()) {
            const ExploredResult result = explore_case(explored, mistake, seconds);
            CAPTURE(explored.algorithm, explored.ranks, name_of(mistake));
            const bool must_fail = result.has_flag && is_needed(explored, mistake);
            REQUIRE((result.exploration.failure != ExploredFailure::none) == must_fail);
            REQUIRE(result.timeline.empty() != must_fail);
            failures += must_fail;
        }
    REQUIRE(failures >= 288);  // a new all-reduce adds its own
}

// A rank overwrites the call of two collectives ago, which another may still be reading.
TEST_CASE("the wait for the call before is needed where protocols are mixed") {
    for (const ExploredCase& explored : explored_cases())
        if (explored.algorithm == "mixed" && explored.ranks == 3) {
            int found = 0;
            for (const FlagPlace& place : flag_places_of(explored))
                if (place.place.name == "begin_collective" && !place.is_store)
                    for (const Mistake& mistake : mistakes_at(place)) {
                        const ExploredResult result = explore_case(explored, mistake, seconds);
                        REQUIRE(result.exploration.failure == ExploredFailure::race);
                        found++;
                    }
            REQUIRE(found == 2);
        }
}

// Two workers with two messages each may come in six orders; and who comes while the server looks
// elsewhere is another case.
TEST_CASE("a server's mailboxes are found full in different orders") {
    int seen = 0;
    for (const ExploredCase& explored : explored_cases())
        if (explored.algorithm == "mailboxes") {
            const cuda_on_cpu::Exploration result =
                explore_case(explored, std::nullopt, seconds).exploration;
            REQUIRE((result.executions >= 6) == (explored.ranks == 3));
            seen++;
        }
    REQUIRE(seen == 2);
}

// Blocks have flags of their own: what one of them leaves out, the other's flags do not make good.
TEST_CASE("each block of a kernel needs its own flags") {
    int found = 0;
    for (const ExploredCase& explored : explored_cases())
        if (explored.note == "2 blocks" && explored.ranks == 2 &&
            explored.algorithm != "send/receive")
            for (const auto part : {Mistake::Part::wait, Mistake::Part::release}) {
                CAPTURE(explored.algorithm);
                const Mistake of_one{part, FlagKind::acknowledgement, "", 1};
                const ExploredResult result = explore_case(explored, of_one, seconds);
                REQUIRE(result.exploration.failure == ExploredFailure::race);
                REQUIRE(result.failure.find(" in block 1 ") != std::string::npos);
                found++;
            }
    REQUIRE(found == 10);
}

// A send on another stream may find the one before on its way.
TEST_CASE("a send waits for the acknowledgement of the one before, on whichever stream it was") {
    const std::vector<ExploredCase> cases = explored_cases();
    const auto messages = std::ranges::find(cases, "2 streams", &ExploredCase::note);
    int found = 0;
    for (const FlagPlace& place : flag_places_of(*messages))
        if (place.flag == FlagKind::acknowledgement && !place.is_store) {
            const Mistake wait{Mistake::Part::wait, place.flag, place.place.lines};
            CAPTURE(place.place.lines);
            REQUIRE(explore_case(*messages, wait, seconds).exploration.failure !=
                    ExploredFailure::none);
            found++;
        }
    REQUIRE(found == 2);  // before it posts, and at the end
}

// Whether reasons() speaks of the protocol at all: a reader's new all-reduce need not be there.
bool is_explained(const std::string& algorithm) {
    return std::ranges::any_of(reasons(), [&](const Reason& reason) {
        return std::ranges::count(reason.algorithms, algorithm) > 0;
    });
}

// Each call of a wait, a raise or a store is missed in some case, or stands among the reasons.
TEST_CASE("without a call a protocol fails, or a reason says why not", "[.][each_call]") {
    std::set<std::size_t> given;
    int found = 0, needless = 0;
    for (const TakenAway& call : take_each_call_away(explored_cases(), seconds)) {
        CAPTURE(call.algorithm, name_of(call.mistake), call.function);
        if (!call.failure.empty()) {
            found++;
            continue;
        }
        CHECK(call.is_complete);
        if (!is_explained(call.algorithm))
            continue;
        CHECK(reason_for(call) > 0);
        given.insert(reason_for(call));
        needless++;
    }
    CHECK(given.size() == reasons().size());  // none is left over
    CHECK(found >= 163);                      // a new all-reduce adds its own
    CHECK(needless >= 75);
}

TEST_CASE("a timeline names the ranks' arrays and flags") {
    const std::vector<ExploredCase> cases = explored_cases();
    const auto ring = std::find_if(cases.begin(), cases.end(), [](const ExploredCase& c) {
        return c.algorithm == "ring" && c.ranks == 2;
    });
    const ExploredResult result =
        explore_case(*ring, Mistake{Mistake::Part::acquire, FlagKind::post}, seconds);
    REQUIRE(result.failure == "race at rank 1's output[64]: 1 writes, 0 reads");
    for (const char* text : {"rank 0", "rank 1", "writes own output[64..95]",
                             "reads own posted[1] = 1.1, relaxed", "reads rank 1's output[64]"})
        REQUIRE(result.timeline.find(text) != std::string::npos);
}

}  // namespace ddp::test
