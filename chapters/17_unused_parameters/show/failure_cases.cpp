#include "17_unused_parameters/show/failure_cases.hpp"

#include <algorithm>

namespace ddp {
namespace {

const Route both = {0, 1}, second_only = {1};

Routes steps_through_both(int world_size, int steps) {
    return Routes(static_cast<std::size_t>(steps),
                  std::vector<Route>(static_cast<std::size_t>(world_size), both));
}

// Returns routes in which rank 0 has five batches, rank 1 four, and every other rank three.
Routes uneven_routes(int world_size) {
    constexpr int most = 5;
    Routes routes = steps_through_both(world_size, most);
    for (int rank = 0; rank < world_size; rank++)
        for (int step = most - std::min(rank, 2); step < most; step++)
            routes[static_cast<std::size_t>(step)][static_cast<std::size_t>(rank)].clear();
    return routes;
}

}  // namespace

std::string to_string(FailureCase failure) {
    switch (failure) {
        case FailureCase::branch:
            return "A branch that one rank does not take";
        case FailureCase::uneven:
            return "Ranks with different numbers of batches";
        case FailureCase::order:
            return "Gradients that are sent as soon as they are ready";
        case FailureCase::shapes:
            return "A layer of another size on one rank";
        case FailureCase::caps:
            return "Another bucket cap on one rank";
        default:
            return "A forward that goes past DDP";
    }
}

std::string cure_of(FailureCase failure) {
    switch (failure) {
        case FailureCase::branch:
            return "find_unused_parameters";
        case FailureCase::uneven:
            return "join";
        case FailureCase::order:
            return "buckets, strictly in order";
        case FailureCase::shapes:
            return "the same network on all ranks";
        case FailureCase::caps:
            return "the same cap on all ranks";
        default:
            return "the forward of DistributedDataParallel";
    }
}

Routes changing_routes(int world_size) {
    Routes routes = steps_through_both(world_size, 6);
    routes[step_that_hangs].back() = second_only;
    std::ranges::fill(routes[3], second_only);  // expert 0 on no rank
    std::ranges::fill(routes[4], second_only);  // expert 0 on rank 0 only
    routes[4].front() = both;
    return routes;
}

Training training_with(FailureCase failure, bool is_cured, int rank, int world_size,
                       double timeout_s) {
    const bool is_other = rank + 1 == world_size && !is_cured;
    Training training{.routes = steps_through_both(world_size, 3)};
    if (!is_cured)
        training.timeout_s = timeout_s;
    switch (failure) {
        case FailureCase::branch:
            training.routes = changing_routes(world_size);
            training.unused = is_cured ? Unused::searched : Unused::refused;
            if (!is_cured)
                training.routes.resize(step_that_hangs + 1);
            break;
        case FailureCase::uneven:
            training.routes = uneven_routes(world_size);
            training.joins = is_cured;
            break;
        case FailureCase::order:
            training.sends_when_ready = !is_cured;
            for (auto& ranks : training.routes)
                ranks.back() = {1, 0};
            break;
        case FailureCase::shapes:
            training.width -= is_other;
            break;
        case FailureCase::caps:
            training.unused = Unused::searched;
            training.cap_bytes *= is_other ? 4 : 1;
            break;
        case FailureCase::past_ddp:
            training.goes_past_ddp = !is_cured;
            break;
    }
    return training;
}

}  // namespace ddp
