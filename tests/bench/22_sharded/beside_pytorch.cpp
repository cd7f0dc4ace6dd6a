#include "tests/bench/22_sharded/beside_pytorch.hpp"

#include <csignal>
#include <iostream>

#include "05_ranks/world.hpp"
#include "common/gpu/launch.hpp"
#include "common/report/csv.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tests/bench/15_overlap/pytorch.hpp"
#include "tests/bench/22_sharded/timed_stages.hpp"

namespace ddp {
namespace {

constexpr int beside_batch = 64;  // samples a rank: as many as ./book bench train has

}  // namespace

// On a GPU none is measured: its ranks would want a GPU each.
std::optional<BenchmarkSubprocess> start_fully_shard(const std::string& pytorch, int ranks) {
    if (pytorch == "off" || !kernels_run_on_cpu)
        return std::nullopt;
    std::signal(SIGPIPE, SIG_IGN);  // a PyTorch that has died is reported as an error
    const std::string python = pytorch == "auto" ? "" : pytorch;
    auto started = start_pytorch(python, "deep", beside_batch, ranks, "fully_shard");
    if (!started && !python.empty())
        throw OptionError("--pytorch " + python + " is no Python whose PyTorch has fully_shard: `" +
                          python + " -c 'import torch.distributed.fsdp'` must work, from 2.6 on.");
    return started;
}

void show_beside_pytorch(std::optional<BenchmarkSubprocess> pytorch, int rounds,
                         CommonOptions common, const std::filesystem::path& csv) {
    if (!pytorch) {
        std::cout << "PyTorch's fully_shard was not measured. --pytorch PYTHON names a Python that "
                     "has it.\n";
        return;
    }
    common.link = std::nullopt;
    World world(common);
    std::vector<std::vector<double>> seconds;
    world.run([&](Rank& rank) {
        const auto all = time_beside(rank, beside_batch, rounds, common.seed,
                                     [&](int steps) { return pytorch->run(steps).at(0); });
        if (rank.rank() == 0)
            seconds = all;
    });
    Table table("A step beside PyTorch's fully_shard on Gloo: " + std::to_string(*common.ranks) +
                    " ranks, 64 samples each",
                {"", "a step", "spread", "this book is"});
    CsvWriter file(csv, {"program", "step_ms", "ratio"});
    const std::string names[] = {"stage 1", "stage 3", pytorch->greeting()};
    for (std::size_t i = 0; i < seconds.size(); i++) {
        const double step_s = median(seconds[i]), ratio = median_ratio(seconds[2], seconds[i]);
        table.row({names[i], format_seconds(step_s), format_percent(spread(seconds[i])),
                   i < 2 ? format_fixed(ratio, 2) : "1"});
        file.row({names[i], step_s * 1e3, ratio});
    }
    table.note(
        "Medians, and how many times as fast as PyTorch: the median of the rounds' ratios. No link "
        "is simulated.");
    std::cout << table;
}

}  // namespace ddp
