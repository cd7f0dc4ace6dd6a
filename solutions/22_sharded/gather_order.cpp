// The exercise gather_order: who gathers what when. Read exercises/22_sharded/README.md first.
#include "exercises/22_sharded/gather_order.hpp"

#include <algorithm>

namespace ddp {

std::vector<Planned> step_plan(int blocks) {
    // stub: step_plan
    //: Write down a step of three blocks, and look where the turn from forward to backward is.
    std::vector<Planned> plan = {{Action::gather, 0}};
    for (int block = 0; block < blocks; block++) {
        if (block + 1 < blocks)
            plan.push_back({Action::gather, block + 1});
        plan.push_back({Action::forward, block});
        if (block + 1 < blocks)
            plan.push_back({Action::release, block});
    }
    for (int block = blocks - 1; block >= 0; block--) {
        if (block > 0)
            plan.push_back({Action::gather, block - 1});
        plan.push_back({Action::backward, block});
        plan.push_back({Action::release, block});
        plan.push_back({Action::reduce_scatter, block});
    }
    return plan;
    // end stub
}

std::optional<Difference> first_difference(const std::vector<std::vector<Planned>>& calls) {
    // stub: first_difference
    //: Behind the last call of a rank comes none: which call is that?
    std::size_t most = 0;
    for (const auto& of_rank : calls)
        most = std::max(most, of_rank.size());
    for (std::size_t place = 0; place < most; place++) {
        const auto call_of = [&](std::size_t rank) {
            return place < calls[rank].size() ? std::optional(calls[rank][place]) : std::nullopt;
        };
        std::vector<int> ranks;
        for (std::size_t rank = 1; rank < calls.size(); rank++)
            if (call_of(rank) != call_of(0))
                ranks.push_back(static_cast<int>(rank));
        if (!ranks.empty())
            return Difference{place, ranks};
    }
    return std::nullopt;
    // end stub
}

}  // namespace ddp
