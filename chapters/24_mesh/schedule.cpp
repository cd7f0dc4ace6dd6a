// Stage 1 of four, five micro-batches. It is two stages away from the last, so two forwards go
// ahead; then one of each; then the backwards that are left:
//
//     F0 F1 │ F2 B0  F3 B1  F4 B2 │ B3 B4      at most three in flight
//
// Under GPipe all five forwards go ahead.
#include "24_mesh/schedule.hpp"

#include <algorithm>

namespace ddp {

// Forwards until the next stages are busy, then one of each, then the backwards that are left.
std::vector<Action> actions_of(Schedule schedule, int stages, int stage, int micro_batches) {
    const int ahead =
        schedule == Schedule::gpipe ? micro_batches : std::min(micro_batches, stages - 1 - stage);
    std::vector<Action> actions;
    for (int i = 0; i < ahead; i++)
        actions.push_back({true, i});
    for (int i = ahead; i < micro_batches; i++) {
        actions.push_back({true, i});
        actions.push_back({false, i - ahead});
    }
    for (int i = micro_batches - ahead; i < micro_batches; i++)
        actions.push_back({false, i});
    return actions;
}

}  // namespace ddp
