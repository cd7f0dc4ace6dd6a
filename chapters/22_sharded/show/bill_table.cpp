#include "22_sharded/show/bill_table.hpp"

#include <iostream>

#include "22_sharded/bill.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

void show_bill(StageModel& model, const StagePlan& plan, const std::filesystem::path& csv) {
    CsvWriter file(csv, {"stage", "ranks", "parameters", "gathered", "gradients", "buckets",
                         "moments", "activations", "communicator"});
    Table table("The bill: KiB of a step on each rank, before anything is allocated",
                {"stage", "ranks", "parameters", "gathered", "gradients", "buckets", "moments",
                 "activations", "communicator", "all"});
    for (const int stage : {0, 1, 2, 3})
        for (const int ranks : {1, 2, 4, 8}) {
            Bill bill = bill_of(model.blocks(), stage, ranks, moments_of(plan.optimizer),
                                {.bfloat16 = plan.bfloat16});
            bill.activations = model.activations();
            const auto kib = [](std::size_t bytes) {
                return format_fixed(static_cast<double>(bytes) / 1024, 0);
            };
            table.row({name_of_stage(stage), std::to_string(ranks), kib(bill.parameters),
                       kib(bill.gathered), kib(bill.gradients), kib(bill.buckets),
                       kib(bill.moments), kib(bill.activations), kib(bill.communicator),
                       kib(bill.total())});
            file.row({stage, ranks, bill.parameters, bill.gathered, bill.gradients, bill.buckets,
                      bill.moments, bill.activations, bill.communicator});
        }
    std::cout << table << "\n";
}

}  // namespace ddp
