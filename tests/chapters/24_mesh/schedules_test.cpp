// The orders of a stage's work, and a clock that runs them. The pipeline itself is in
// training_test.cpp.
#include <algorithm>
#include <map>
#include <tuple>

#include "24_mesh/pipeline.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Returns when a step ends, with a forward of 1 and a backward of 2; 0 if the stages wait for one
// another for ever. A message takes no time.
int step_time(Schedule schedule, int stages, int micro_batches) {
    // When a stage's forward (or backward) of a micro-batch was over.
    std::map<std::tuple<int, bool, int>, int> over;
    std::vector<int> clock(static_cast<std::size_t>(stages));
    std::vector<std::size_t> done(clock.size());
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (std::size_t s = 0; s < done.size(); s++) {
            const int stage = static_cast<int>(s);
            const auto actions = actions_of(schedule, stages, stage, micro_batches);
            if (done[s] == actions.size())
                continue;
            const auto [is_forward, i] = actions[done[s]];
            const int from = is_forward ? stage - 1 : stage + 1;
            if (from >= 0 && from < stages && !over.contains({from, is_forward, i}))
                continue;
            clock[s] = std::max(clock[s], over[{from, is_forward, i}]) + (is_forward ? 1 : 2);
            over[{stage, is_forward, i}] = clock[s];
            done[s]++;
            goes_on = true;
        }
    }
    const std::size_t all = 2 * static_cast<std::size_t>(micro_batches);
    return std::ranges::count(done, all) == stages ? std::ranges::max(clock) : 0;
}

}  // namespace

TEST_CASE("schedules: each micro-batch forward and backward, in order, as few at once as may be") {
    for (int stages = 1; stages <= 5; stages++)
        for (int micro_batches = 1; micro_batches <= 9; micro_batches++)
            for (int stage = 0; stage < stages; stage++)
                for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b}) {
                    CAPTURE(stages, micro_batches, stage, schedule == Schedule::gpipe);
                    int forward = 0, backward = 0, most = 0;
                    const auto actions = actions_of(schedule, stages, stage, micro_batches);
                    for (const Action& action : actions) {
                        REQUIRE(action.micro_batch == (action.is_forward ? forward : backward));
                        (action.is_forward ? forward : backward)++;
                        REQUIRE(backward <= forward);
                        most = std::max(most, forward - backward);
                    }
                    REQUIRE(forward == micro_batches);
                    REQUIRE(backward == micro_batches);
                    REQUIRE(most == (schedule == Schedule::gpipe
                                         ? micro_batches
                                         : std::min(micro_batches, stages - stage)));
                }
}

TEST_CASE("schedules: no stage waits for ever, and both idle for p - 1 of m + p - 1") {
    for (int stages = 1; stages <= 5; stages++)
        for (int micro_batches = 1; micro_batches <= 9; micro_batches++)
            for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b}) {
                CAPTURE(stages, micro_batches, schedule == Schedule::gpipe);
                REQUIRE(step_time(schedule, stages, micro_batches) ==
                        3 * (micro_batches + stages - 1));
            }
}

}  // namespace ddp::test
