#include "15_unused_parameters/demonstration.hpp"

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr double wait_in_vain_s = 1;  // it would be --timeout

}  // namespace

Demonstration::Demonstration(World& world, const CommonOptions& common)
    : world_(world),
      seed_(common.seed),
      timeline_(world.has_rank_0() ? beside(common.csv, "timeline") : "",
                {"part", "rank", "stream", "name", "begin_ms", "end_ms"}),
      traces_(static_cast<std::size_t>(world.world_size())) {}

void Demonstration::show(Mishap mishap) {
    if (world_.has_rank_0())
        std::cout << "\n" << text_of(mishap) << "\n";
    if (world_.world_size() > 1)
        fail(mishap);
    cure(mishap);
}

// What ranks have left in `traces_` is read in a run of its own: the one that has failed is over.
void Demonstration::fail(Mishap mishap) {
    try {
        world_.run([&](Rank& rank) { train(rank, mishap, false); });
        throw std::logic_error("what should have gone wrong went well");
    } catch (const RunFailed& failure) {  // shown on purpose
        if (world_.has_rank_0())
            std::cout << "    " << failure.what() << "\n";
    }
    if (mishap == Mishap::branch || mishap == Mishap::uneven)
        world_.run([&](Rank& rank) { report(rank); });
    if (mishap == Mishap::branch)
        world_.run([&](Rank& rank) { write_timeline(rank, "hangs"); });
}

void Demonstration::cure(Mishap mishap) {
    world_.run([&](Rank& rank) {
        const double difference = train(rank, mishap, true);
        if (rank.rank() == 0)
            std::cout << "  Cured by " << cure_of(mishap) << ": "
                      << format_fixed(difference * 1e6, 2)
                      << " millionths from what one rank learns with all batches\n";
        if (!(difference <= 1e-5))
            throw std::runtime_error("the ranks have not learned what one rank learns");
        if (mishap == Mishap::branch)
            write_timeline(rank, "cured");
    });
}

double Demonstration::train(Rank& rank, Mishap mishap, bool is_cured) {
    rank.select_device();
    Trainee trainee(rank,
                    training_with(mishap, is_cured, rank.rank(), rank.world_size(), wait_in_vain_s),
                    seed_, traces_[static_cast<std::size_t>(rank.rank())]);
    trainee.learn(mishap == Mishap::branch ? step_that_hangs : -1);
    return is_cured ? trainee.difference_from_one_rank() : 0;
}

void Demonstration::report(Rank& rank) {
    const std::vector<StepState> states =
        gather(rank, traces_[static_cast<std::size_t>(rank.rank())].state);
    if (rank.rank() == 0)
        for (const std::string& line : desync_report(states))
            std::cout << "      " << line << "\n";
}

void Demonstration::write_timeline(Rank& rank, const std::string& part) {
    const std::vector<Interval> all =
        gather(rank, traces_[static_cast<std::size_t>(rank.rank())].timeline);
    if (rank.rank() != 0 || all.empty())
        return;
    const double zero = std::ranges::min_element(all, {}, &Interval::begin_s)->begin_s;
    for (const Interval& interval : all)
        timeline_.row({part, interval.rank, interval.lane, interval.what,
                       (interval.begin_s - zero) * 1e3, (interval.end_s - zero) * 1e3});
}

}  // namespace ddp
