#include "22_sharded/show/tables.hpp"

#include <iostream>

#include "22_sharded/bill.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

void show_budget(StageModel& model, const StagePlan& plan, int own_ranks,
                 const std::filesystem::path& csv) {
    CsvWriter file(csv, {"stage", "ranks", "parameters", "gathered", "gradients", "buckets",
                         "moments", "activations", "communicator"});
    Table table("The memory budget: KiB per rank, before anything is allocated, " +
                    std::to_string(own_ranks) + " ranks",
                {"stage", "parameters", "gathered", "gradients", "buckets", "moments",
                 "activations", "communicator", "all"});
    for (const int stage : {0, 1, 2, 3}) {
        const auto bill_on = [&](int ranks) {
            Bill bill = bill_of(model.blocks(), stage, ranks, moments_of(plan.optimizer),
                                {.bfloat16 = plan.bfloat16});
            bill.activations = model.activations();
            return bill;
        };
        const auto kib = [](std::size_t bytes) {
            return format_fixed(static_cast<double>(bytes) / 1024, 0);
        };
        const Bill own = bill_on(own_ranks);
        table.row({name_of_stage(stage), kib(own.parameters), kib(own.gathered), kib(own.gradients),
                   kib(own.buckets), kib(own.moments), kib(own.activations), kib(own.communicator),
                   kib(own.total())});
        for (const int ranks : {1, 2, 4, 8}) {
            const Bill bill = bill_on(ranks);
            file.row({stage, ranks, bill.parameters, bill.gathered, bill.gradients, bill.buckets,
                      bill.moments, bill.activations, bill.communicator});
        }
    }
    std::cout << table << "\n";
}

void show_stages(Rank& rank, const LabelledImages& images, StagePlan plan,
                 const std::vector<int>& stages, const std::filesystem::path& csv) {
    const bool prints = rank.rank() == 0;
    CsvWriter file(prints ? csv : "",
                   {"stage", "parameters", "gradients", "moments", "received_per_step",
                    "seconds_per_step", "hash", "at_most", "first_loss", "last_loss"});
    Table table("What a rank keeps and receives: " + std::to_string(plan.steps) + " steps, " +
                    std::to_string(rank.world_size()) + " ranks",
                {"stage", "parameters", "gradients", "moments", "at most", "received per step",
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
