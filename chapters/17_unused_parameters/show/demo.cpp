#include "17_unused_parameters/show/demo.hpp"

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr double wait_in_vain_s = 1;  // in place of --timeout, so that a hang is soon over

}  // namespace

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
