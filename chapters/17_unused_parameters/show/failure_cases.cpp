#include "17_unused_parameters/show/failure_cases.hpp"

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr double wait_in_vain_s = 1;  // in place of --timeout, so that a hang is soon over

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

// ---- The demonstration

Demo::Demo(World& world, const CommonOptions& common)
    : world_(world),
      seed_(common.seed),
      timeline_(world.has_rank_0() ? beside(common.csv, "timeline") : "",
                {"part", "rank", "stream", "name", "begin_ms", "end_ms"}),
      recorded_(static_cast<std::size_t>(world.world_size())) {}

void Demo::show(FailureCase failure) {
    if (world_.has_rank_0())
        std::cout << "\n" << to_string(failure) << "\n";
    if (world_.world_size() > 1)
        fail(failure);
    cure(failure);
}

// The recorded states are gathered in runs of their own: the one that has failed is over, and its
// ranks can exchange nothing any more.
void Demo::fail(FailureCase failure) {
    try {
        world_.run([&](Rank& rank) { train(rank, failure, false); });
        throw std::logic_error("the training was expected to fail, and did not");
    } catch (const RunFailed& error) {  // shown on purpose
        if (world_.has_rank_0())
            std::cout << "    " << error.what() << "\n";
    }
    if (failure == FailureCase::branch || failure == FailureCase::uneven)
        world_.run([&](Rank& rank) { report(rank); });
    if (failure == FailureCase::branch)
        world_.run([&](Rank& rank) { write_timeline(rank, "hangs"); });
}

void Demo::cure(FailureCase failure) {
    world_.run([&](Rank& rank) {
        const double difference = train(rank, failure, true);
        if (rank.rank() == 0)
            std::cout << "  Cured by " << cure_of(failure) << ": parameters within "
                      << format_fixed(difference * 1e6, 2)
                      << " millionths of those that one rank learns from all batches\n";
        if (!(difference <= 1e-5))
            throw std::runtime_error(
                "the ranks have not learned what one rank learns from all batches");
        if (failure == FailureCase::branch)
            write_timeline(rank, "cured");
    });
}

double Demo::train(Rank& rank, FailureCase failure, bool is_cured) {
    rank.select_device();
    TrainingRun run(
        rank, training_with(failure, is_cured, rank.rank(), rank.world_size(), wait_in_vain_s),
        seed_, recorded_[static_cast<std::size_t>(rank.rank())]);
    run.learn(failure == FailureCase::branch ? step_that_hangs : -1);
    // Past DDP nothing fails by itself: only a comparison of the replicas shows it.
    return is_cured || failure == FailureCase::past_ddp ? run.difference_from_one_rank() : 0;
}

void Demo::report(Rank& rank) {
    const std::vector<StepState> states =
        gather(rank, recorded_[static_cast<std::size_t>(rank.rank())].state);
    if (rank.rank() == 0)
        for (const std::string& line : desync_report(states))
            std::cout << "      " << line << "\n";
}

void Demo::write_timeline(Rank& rank, const std::string& part) {
    const std::vector<StreamSpan> all =
        gather(rank, recorded_[static_cast<std::size_t>(rank.rank())].timeline);
    if (rank.rank() != 0 || all.empty())
        return;
    const double zero = std::ranges::min_element(all, {}, &StreamSpan::begin_s)->begin_s;
    for (const StreamSpan& span : all)
        timeline_.row({part, span.rank, span.track, span.what, (span.begin_s - zero) * 1e3,
                       (span.end_s - zero) * 1e3});
}

}  // namespace ddp
