#include "11_data_parallel/support/programs.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "06_messages/support/shared_device.hpp"
#include "common/report/units.hpp"

namespace ddp {

FashionMnist load_data(World& world, const CommonOptions& common) {
    FashionMnist data;
    world.prepare([&] { data = load_data(common); });
    if (world.has_rank_0())
        std::cout << data.about;
    return data;
}

std::size_t rank_memory(const Rank& rank) {
    constexpr std::size_t usual = std::size_t{512} << 20, least = std::size_t{64} << 20;
    std::size_t free = 0, total = 0;
    DDP_CHECK(cudaMemGetInfo(&free, &total));
    // A quarter is left for what is not reserved here: arenas, the runtime, other programs.
    const auto ranks = static_cast<std::size_t>(ranks_on_a_device(rank));
    const std::size_t share = total / 4 * 3 / ranks;
    if (share < least)
        throw OptionError(std::to_string(ranks) + " ranks share a device of " +
                          format_bytes(static_cast<double>(total)) + ", where each needs " +
                          format_bytes(static_cast<double>(least)) +
                          " and more: " + how_many_may_start(total / 4 * 3 / least));
    return std::min(share, usual) / 512 * 512;
}

Metrics::Totals add_up(Rank& rank, const Metrics::Totals& mine) {
    // In the same order on every rank, and so with the same bits of loss_sum.
    Metrics::Totals sum;
    for (const Metrics::Totals& theirs : rank.all_gather(mine)) {
        sum.loss_sum += theirs.loss_sum;
        sum.correct += theirs.correct;
        sum.samples += theirs.samples;
        // Steps are not summed: all ranks take them at the same time.
        sum.steps = std::max(sum.steps, theirs.steps);
        // -1 means that the rank has had no bad step; otherwise the earliest of all ranks counts.
        if (theirs.first_bad_step >= 0 &&
            (sum.first_bad_step < 0 || theirs.first_bad_step < sum.first_bad_step))
            sum.first_bad_step = theirs.first_bad_step;
    }
    return sum;
}

std::string text_of_hash(std::uint64_t hash) {
    std::ostringstream text;
    text << std::hex << std::setfill('0') << std::setw(16) << hash;
    return text.str();
}

std::string text_of_equal_replicas(int world_size, const std::string& hash) {
    if (world_size == 1)
        return "The parameters of the only rank: hash " + hash;
    return "The parameters of all " + std::to_string(world_size) +
           " ranks are equal to the bit: hash " + hash;
}

}  // namespace ddp
