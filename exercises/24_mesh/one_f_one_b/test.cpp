// The exercise one_f_one_b: each stage's work is read one by one, and then all of it is timed.
#include "exercises/24_mesh/one_f_one_b.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Work = std::vector<StageWork>;
using Schedule = std::vector<Work>;

std::string to_string(const StageWork& work) {
    return (work.is_forward ? "F" : "B") + std::to_string(work.micro_batch);
}

// "12.5 s"
std::string in_seconds(double seconds) {
    const std::string text = std::to_string(seconds);
    return text.substr(0, text.size() - 5) + " s";
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

// ---- Time

enum class WaitsFor { all, forwards, nothing };

// When each piece of work ends: never, if it waits for itself.
class Timeline {
  public:
    Timeline(const Schedule& schedule, const std::vector<StageSeconds>& seconds, WaitsFor waits)
        : schedule_(schedule), seconds_(seconds), waits_(waits) {
        for (const Work& work : schedule)
            ends_.emplace_back(work.size(), unknown);
    }
    double seconds() {
        double last = 0;
        for (std::size_t s = 0; s < schedule_.size(); s++)
            last = std::max(last, end(s, schedule_[s].size()));
        return last;
    }

  private:
    static constexpr double unknown = -1, never = std::numeric_limits<double>::infinity();

    // Returns the end of the first `count` pieces of a stage's work.
    double end(std::size_t s, std::size_t count) {
        if (count == 0)
            return 0;
        double& end_s = ends_[s][count - 1];
        if (end_s != unknown)
            return end_s;
        end_s = never;
        const StageWork& work = schedule_[s][count - 1];
        double begin = end(s, count - 1);
        if (work.is_forward && s > 0 && waits_ != WaitsFor::nothing)
            begin = std::max(begin, end_of(s - 1, work));
        if (!work.is_forward && s + 1 < schedule_.size() && waits_ == WaitsFor::all)
            begin = std::max(begin, end_of(s + 1, work));
        return end_s = begin + (work.is_forward ? seconds_[s].forward : seconds_[s].backward);
    }
    double end_of(std::size_t s, const StageWork& wanted) {
        for (std::size_t i = 0; i < schedule_[s].size(); i++)
            if (to_string(schedule_[s][i]) == to_string(wanted))
                return end(s, i + 1);
        return never;
    }

    const Schedule& schedule_;
    const std::vector<StageSeconds>& seconds_;
    const WaitsFor waits_;
    std::vector<std::vector<double>> ends_;
};
double time_of(const Schedule& schedule, const std::vector<StageSeconds>& seconds,
               WaitsFor waits = WaitsFor::all) {
    return Timeline(schedule, seconds, waits).seconds();
}

// ---- Task actions

// Throws Wrong, beginning with `said`, unless a stage can do this work and has room for it.
void require_work(const Work& work, int stages_left, int micro_batches, int room,
                  const std::string& said) {
    int next[2] = {0, 0};  // backward, forward
    for (const StageWork& each : work) {
        int& wanted = next[each.is_forward];
        if (each.micro_batch != wanted)
            throw Wrong(said + to_string(each) + " comes where " +
                        to_string({each.is_forward, wanted}) +
                        " is due: each once, and from micro-batch 0 to the last.");
        if (wanted++ == micro_batches)
            throw Wrong(said + to_string(each) + " is one too many.");
        if (next[0] > next[1])
            throw Wrong(said + to_string(each) + " comes before its own forward.");
        const int kept = next[1] - next[0];
        if (kept > room)
            throw Wrong(said + "After " + to_string(each) + " it keeps " + std::to_string(kept) +
                        " micro-batches, and it has room for " + std::to_string(room) + ".");
        if (kept > stages_left)
            throw Wrong(said + "After " + to_string(each) + " it keeps " + std::to_string(kept) +
                        " micro-batches. The stages from here to the last are " +
                        std::to_string(stages_left) +
                        ", so by then the first backward could have arrived.");
    }
    for (const bool is_forward : {true, false})
        if (next[is_forward] < micro_batches)
            throw Wrong(said + to_string({is_forward, next[is_forward]}) + " is missing.");
    held();
}

void check_actions(int stages, int micro_batches, int room) {
    const std::string about = std::to_string(stages) + " stages, " + std::to_string(micro_batches) +
                              " micro-batches, room for " + std::to_string(room);
    trying(about + ".");
    Schedule yours, right;
    std::string all;
    for (int s = 0; s < stages; s++) {
        yours.push_back(one_f_one_b(stages, s, micro_batches, room));
        right.push_back(work_keeping(std::min(stages - s, room), micro_batches));
        std::string said = "stage " + std::to_string(s) + " does";
        for (const StageWork& work : yours.back())
            said += " " + to_string(work);
        require_work(yours.back(), stages - s, micro_batches, room, about + ": " + said + ".\n");
        all += said + "\n";
    }
    const std::vector<StageSeconds> seconds(static_cast<std::size_t>(stages), {1, 2});
    const double yours_s = time_of(yours, seconds), right_s = time_of(right, seconds);
    if (std::isinf(yours_s))
        throw Wrong(about + ":\n" + all +
                    "The stages wait for each other for ever: before its first backward, a stage "
                    "needs at least as many forwards as the stage after it.");
    if (yours_s > right_s)
        throw Wrong(about + ":\n" + all + "With 1 s for a forward and 2 s for a backward that's " +
                    in_seconds(yours_s) + ", and it can be " + in_seconds(right_s) +
                    ": a stage that may keep one more begins another forward before it waits.");
    held();
}

// ---- Task seconds

void check_seconds(const Schedule& schedule, const std::vector<StageSeconds>& seconds,
                   const std::string& what) {
    trying(what + ".");
    const double right = time_of(schedule, seconds);
    const std::optional<double> yours = pipeline_seconds(schedule, seconds);
    if (std::isinf(right) != !yours)
        throw Wrong(what + ": you return " + (yours ? in_seconds(*yours) : "nothing") +
                    (yours ? ", and these stages wait for each other for ever."
                           : ", and this ends after " + in_seconds(right) + "."));
    if (yours && std::abs(*yours - right) > 1e-9) {
        const auto is = [&](double seconds_s) { return std::abs(*yours - seconds_s) < 1e-9; };
        double sum = 0;
        for (std::size_t s = 0; s < schedule.size(); s++)
            for (const StageWork& work : schedule[s])
                sum += work.is_forward ? seconds[s].forward : seconds[s].backward;
        throw Wrong(
            what + ": you return " + in_seconds(*yours) + ", and right is " + in_seconds(right) +
            ".\n" +
            (is(time_of(schedule, seconds, WaitsFor::nothing))
                 ? "Your stages wait for nothing: that's the time of the slowest one."
             : is(time_of(schedule, seconds, WaitsFor::forwards))
                 ? "Your forwards wait for the stage before, and your backwards for nothing."
             : is(time_of(schedule, std::vector(seconds.size(), seconds[0])))
                 ? "All stages take the seconds of stage 0 with you."
             : is(sum) ? "You add up all work, as if one stage worked at a time."
                       : "Work begins when its stage has ended what comes before, and when what it "
                         "waits for has ended: at the later of the two."));
    }
    held();
}

void check_all_seconds() {
    const Schedule two = {work_keeping(2, 3), work_keeping(1, 3)};
    check_seconds(two, {{1, 2}, {1, 2}}, "2 stages, 3 micro-batches, 1F1B");
    check_seconds({work_keeping(1, 3)}, {{1, 2}}, "1 stage");
    check_seconds(two, {{1, 2}, {4, 5}}, "2 stages, of which the second is slow");
    check_seconds(Schedule(4, work_keeping(8, 8)), std::vector<StageSeconds>(4, {1, 2}),
                  "4 stages, 8 micro-batches, GPipe");
    check_seconds({work_keeping(3, 6), work_keeping(2, 6), work_keeping(1, 6)},
                  {{1, 1}, {3, 7}, {2, 0.5}}, "3 stages with different seconds");
    check_seconds({work_keeping(1, 2), work_keeping(2, 2)}, {{1, 2}, {1, 2}},
                  "Stage 0 does F0 B0 F1 B1, stage 1 does F0 F1 B0 B1");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"actions",
             [] {
                 for (const auto& [stages, micro_batches, room] :
                      {std::array{2, 3, 9}, {4, 8, 4}, {1, 3, 5}, {4, 2, 9}, {4, 8, 2}, {3, 5, 1}})
                     check_actions(stages, micro_batches, room);
             }},
            {"seconds", check_all_seconds}};
}

}  // namespace ddp::test
