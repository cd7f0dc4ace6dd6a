// The exercise one_f_one_b: each stage's work is read one by one, and schedules are timed whose
// time can be counted on a drawing.
#include "exercises/24_mesh/one_f_one_b.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Work = std::vector<StageWork>;

std::string to_string(const StageWork& work) {
    return (work.is_forward ? "F" : "B") + std::to_string(work.micro_batch);
}

// "12.5 s", or "nothing"
std::string to_string(std::optional<double> seconds) {
    const std::string text = std::to_string(seconds.value_or(0));
    return seconds ? text.substr(0, text.size() - 5) + " s" : "nothing";
}

// Returns a stage's work that keeps `most` micro-batches.
Work work_keeping(int most, int micro_batches) {
    Work work;
    for (int forwards = 0, backwards = 0; backwards < micro_batches;)
        if (forwards < micro_batches && forwards - backwards < most)
            work.push_back({true, forwards++});
        else
            work.push_back({false, backwards++});
    return work;
}

// Returns what is wrong with doing `yours` where `right` is due and `kept` micro-batches are kept.
std::string mistake_at(const StageWork& yours, const StageWork& right, int kept, int stages_left,
                       int room) {
    if (yours.is_forward == right.is_forward)
        return "Each of both comes once for each micro-batch, from 0 to the last.";
    if (!yours.is_forward)
        return kept == 0 ? "A backward needs its own forward."
                         : "It keeps " + std::to_string(kept) +
                               " then, and may keep one more: it idles longer than it has to.";
    return "Then it keeps " + std::to_string(kept + 1) + ". " +
           (kept == room ? "It has room for " + std::to_string(room) + "."
                         : "The stages from here to the last are " + std::to_string(stages_left) +
                               ": the first backward could have arrived by then.");
}

void check_actions(int stages, int micro_batches, int room) {
    for (int stage = 0; stage < stages; stage++) {
        std::string said = "Stages: " + std::to_string(stages) +
                           ", micro-batches: " + std::to_string(micro_batches) +
                           ", room: " + std::to_string(room) + ". Stage " + std::to_string(stage) +
                           " does";
        trying(said);
        const int left = stages - stage;
        const Work yours = one_f_one_b(stages, stage, micro_batches, room),
                   right = work_keeping(std::min(left, room), micro_batches);
        for (const StageWork& work : yours)
            said += " " + to_string(work);
        int kept = 0;
        for (std::size_t i = 0; i < std::min(yours.size(), right.size()); i++) {
            if (to_string(yours[i]) != to_string(right[i]))
                throw Wrong(said + ".\n" + to_string(yours[i]) + " comes where " +
                            to_string(right[i]) + " is due. " +
                            mistake_at(yours[i], right[i], kept, left, room));
            kept += right[i].is_forward ? 1 : -1;
        }
        if (yours.size() != right.size())
            throw Wrong(said + ".\nA forward and a backward of each micro-batch are due.");
    }
}

// `careless`: how long it takes if backwards begin as soon as their stage is free.
void check_seconds(const std::vector<Work>& schedule, const std::vector<StageSeconds>& seconds,
                   std::optional<double> right, std::optional<double> careless,
                   const std::string& what) {
    trying(what + ".");
    const std::optional<double> yours = pipeline_seconds(schedule, seconds);
    if (to_string(yours) != to_string(right))
        throw Wrong(
            what + ": you return " + to_string(yours) + ", and right is " + to_string(right) +
            ".\n" +
            (!right ? "These stages wait for each other for ever."
             : to_string(yours) == to_string(careless)
                 ? "Your forwards wait for the stage before, and your backwards for nothing."
                 : "Work begins when its stage is free and what it waits for has ended: at "
                   "the later of the two."));
}

void check_all_seconds() {
    const std::vector<Work> two = {work_keeping(2, 3), work_keeping(1, 3)};
    check_seconds(two, {{1, 2}, {1, 2}}, 12, 10, "2 stages, 3 micro-batches, 1F1B");
    check_seconds({work_keeping(1, 3)}, {{1, 2}}, 9, 9, "1 stage");
    check_seconds(two, {{1, 2}, {4, 5}}, 30, 28, "2 stages, of which the second is slow");
    check_seconds(std::vector<Work>(4, work_keeping(8, 8)), std::vector<StageSeconds>(4, {1, 2}),
                  33, 27, "4 stages, 8 micro-batches, GPipe");
    check_seconds({work_keeping(1, 2), work_keeping(2, 2)}, {{1, 2}, {1, 2}}, std::nullopt, 0,
                  "Stage 0 does F0 B0 F1 B1, stage 1 does F0 F1 B0 B1");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"actions",
             [] {
                 for (const auto& [stages, micro_batches, room] :
                      {std::array{1, 3, 9}, {2, 3, 9}, {4, 8, 4}, {4, 2, 9}, {4, 8, 2}, {3, 5, 1}})
                     check_actions(stages, micro_batches, room);
             }},
            {"seconds", check_all_seconds}};
}

}  // namespace ddp::test
