#include "tests/bench/15_overlap/step_grid.hpp"

#include "05_ranks/world.hpp"
#include "15_overlap/show/linked_steps.hpp"
#include "15_overlap/show/timeline_report.hpp"
#include "common/report/csv.hpp"

namespace ddp {
namespace {

constexpr int caps_mib[] = {0, 1, 4, 16};  // 0: each gradient; 16: all of them
constexpr int links_mb_s[] = {100, 200, 400, 800};

TwoSteps record(const CommonOptions& common, int batch, int cap, int link) {
    World world(common);
    TwoSteps recorded;
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
        Random random(common.seed);
        const LinkedSteps steps =
            measure_linked_steps(rank, device, random, batch, {link * 1e6, 100e-6},
                                 static_cast<std::size_t>(cap) << 20, common.quick ? 1 : 5);
        if (rank.rank() == 0)
            recorded = steps.timelines;
    });
    return recorded;
}

}  // namespace

void record_step_grid(const CommonOptions& common, int batch) {
    std::vector<std::string> columns{"cap_mib", "link_mb_s"};
    columns.insert(columns.end(), timeline_columns.begin(), timeline_columns.end());
    CsvWriter file(beside(common.csv, "grid"), columns);
    for (const int cap : caps_mib)
        for (const int link : links_mb_s)
            write_timeline(file, {cap, link}, record(common, batch, cap, link));
}

}  // namespace ddp
