// The exercise one_f_one_b: who does what when in a pipeline. Read exercises/24_mesh/README.md
// first.
#include "exercises/24_mesh/one_f_one_b.hpp"

#include <algorithm>
#include <map>

namespace ddp {

std::vector<StageWork> one_f_one_b(int stages, int stage, int micro_batches, int room) {
    // stub: actions
    //: Begin with the forwards that come before the first backward.
    const int kept = std::min({stages - stage, room, micro_batches});
    std::vector<StageWork> work;
    for (int i = 0; i < micro_batches + kept; i++) {
        if (i >= kept)
            work.push_back({false, i - kept});
        if (i < micro_batches)
            work.push_back({true, i});
    }
    return work;
    // end stub
}

// stub
namespace {

using Ends = std::vector<std::map<int, double>>;  // of each stage, by micro-batch

// Returns when what this work needs has ended, or nothing if it hasn't.
std::optional<double> ready(const StageWork& work, std::size_t stage, const Ends& forward,
                            const Ends& backward) {
    if (work.is_forward && stage == 0)
        return 0;
    const auto& needed = work.is_forward               ? forward[stage - 1]
                         : stage + 1 < backward.size() ? backward[stage + 1]
                                                       : forward[stage];
    const auto end = needed.find(work.micro_batch);
    return end == needed.end() ? std::nullopt : std::optional(end->second);
}

}  // namespace

// end stub
std::optional<double> pipeline_seconds(const std::vector<std::vector<StageWork>>& schedule,
                                       const std::vector<StageSeconds>& seconds) {
    // stub: seconds
    //: Let every stage go on until it has to wait, and ask all of them again.
    const std::size_t stages = schedule.size();
    Ends forward(stages), backward(stages);
    std::vector<std::size_t> done(stages);
    std::vector<double> now(stages);
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (std::size_t s = 0; s < stages; s++)
            for (; done[s] < schedule[s].size(); done[s]++) {
                const StageWork& work = schedule[s][done[s]];
                const std::optional<double> from = ready(work, s, forward, backward);
                if (!from)
                    break;
                now[s] = std::max(now[s], *from) +
                         (work.is_forward ? seconds[s].forward : seconds[s].backward);
                (work.is_forward ? forward : backward)[s][work.micro_batch] = now[s];
                goes_on = true;
            }
    }
    for (std::size_t s = 0; s < stages; s++)
        if (done[s] < schedule[s].size())
            return std::nullopt;
    return std::ranges::max(now);
    // end stub
}

}  // namespace ddp
