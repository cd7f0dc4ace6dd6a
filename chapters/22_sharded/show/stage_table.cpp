#include "22_sharded/show/stage_table.hpp"

#include <iostream>

#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

void show_stages(Rank& rank, const LabelledImages& images, StagePlan plan,
                 const std::vector<int>& stages, const std::filesystem::path& csv) {
    const bool prints = rank.rank() == 0;
    CsvWriter file(prints ? csv : "",
                   {"stage", "parameters", "gradients", "moments", "received_per_step",
                    "seconds_per_step", "hash", "at_most", "first_loss", "last_loss"});
    Table table("What a rank keeps and receives: " + std::to_string(plan.steps) + " steps, " +
                    std::to_string(rank.world_size()) + " ranks",
                {"stage", "parameters", "gradients", "moments", "at most", "received a step",
                 "loss", "hash"});
    std::vector<std::string> hashes;
    for (const int stage : stages) {
        plan.stage = stage;
        const StageResult result = train_at_stage(rank, images, plan);
        const auto kib = [](std::size_t bytes) {
            return format_fixed(static_cast<double>(bytes) / 1024, 0) + " KiB";
        };
        table.row({name_of_stage(stage), kib(result.parameters), kib(result.gradients),
                   kib(result.moments), kib(result.at_most), kib(result.received_per_step),
                   format_fixed(result.last_loss, 3), result.hash});
        file.row({stage, result.parameters, result.gradients, result.moments,
                  result.received_per_step, result.seconds_per_step, result.hash, result.at_most,
                  result.first_loss, result.last_loss});
        hashes.push_back(result.hash);
    }
    const std::string text = text_of_hashes(hashes, plan);
    if (prints)
        std::cout << table << text;
}

}  // namespace ddp
