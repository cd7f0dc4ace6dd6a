#include "22_sharded/show/bill_table.hpp"

#include <iostream>

#include "03_network/models.hpp"
#include "22_sharded/bill.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

void show_bill(Rank& rank, const std::vector<int>& widths, int batch,
               const std::filesystem::path& csv) {
    if (rank.rank() != 0)
        return;
    Device device;  // for the sizes of a model that nobody trains
    Random random(1);
    const auto model = make_mlp(device, random, widths);
    CsvWriter file(csv, {"stage", "ranks", "parameters", "gathered", "gradients", "buckets",
                         "moments", "activations"});
    Table table("The bill: bytes of a step on each rank, before anything is allocated",
                {"stage", "ranks", "parameters", "gathered", "gradients", "buckets", "moments",
                 "activations", "all"});
    for (const int stage : {0, 1, 2, 3})
        for (const int ranks : {1, 2, 4, 8}) {
            Bill bill = bill_of(units_of(blocks_of(*model), ranks), stage, ranks, 2);
            bill.activations = mlp_activations(widths, batch);
            const auto kib = [](std::size_t bytes) {
                return format_fixed(static_cast<double>(bytes) / 1024, 0) + " KiB";
            };
            table.row({stage == 0 ? "0: DDP" : std::to_string(stage), std::to_string(ranks),
                       kib(bill.parameters), kib(bill.gathered), kib(bill.gradients),
                       kib(bill.buckets), kib(bill.moments), kib(bill.activations),
                       kib(bill.total())});
            file.row({stage, ranks, bill.parameters, bill.gathered, bill.gradients, bill.buckets,
                      bill.moments, bill.activations});
        }
    table.note("Adam. The communicator's own buffers come on top.");
    std::cout << table << "\n";
}

}  // namespace ddp
