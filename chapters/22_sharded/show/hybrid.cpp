#include "22_sharded/show/tables.hpp"

#include <iostream>

#include "10_nodes/placement.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

void show_hybrid(Rank& rank, const LabelledImages& images, StagePlan plan,
                 const AllReduceOrder& order, const std::filesystem::path& csv) {
    plan.order = order;
    const Job& job = rank.job();
    // If nobody has named nodes, there are two with half of the ranks each.
    if (!plan.order.shape && !job.has_several_nodes() && job.world_size() % 2 == 0)
        plan.order.shape = NodeShape{2, job.world_size() / 2};
    const Placement placement = placement_of(Group::all(job), job, rank.rank(), plan.order.shape);
    plan.stage = 0;
    const StageResult replicated = train_at_stage(rank, images, plan);
    plan.stage = 3;
    const StageResult hybrid = train_hybrid(rank, images, plan);
    if (rank.rank() == 0) {
        CsvWriter file(csv, {"sharding", "parameters", "gradients", "moments", "between_nodes",
                             "seconds_per_step", "hash"});
        Table table(
            "Sharded within a node: " + std::to_string(plan.steps) + " steps, " + placement.text(),
            {"", "parameters", "gradients", "moments", "leaves a node per step", "hash"});
        // An all-reduce over the nodes, of the gradients or of the ranks' chunks of them.
        const double nodes = placement.nodes();
        const double sent = 2 * (nodes - 1) / nodes * static_cast<double>(replicated.gradients);
        const auto row = [&](const std::string& name, const StageResult& result) {
            const auto kib = [](double bytes) { return format_fixed(bytes / 1024, 0) + " KiB"; };
            table.row({name, kib(static_cast<double>(result.parameters)),
                       kib(static_cast<double>(result.gradients)),
                       kib(static_cast<double>(result.moments)), kib(sent), result.hash});
            file.row({name, result.parameters, result.gradients, result.moments, sent,
                      result.seconds_per_step, result.hash});
        };
        row("DDP", replicated);
        row("hybrid", hybrid);
        std::cout << table << order_line(job, plan.order);
    }
    const bool are_equal = replicated.hash == hybrid.hash;
    if (!are_equal && uses_two_levels(placement, plan.order.levels))
        throw std::runtime_error("the hybrid ends in other bits than DDP: a sum has another order");
    if (rank.rank() == 0)
        std::cout << (are_equal ? "Both end in the same bits.\n"
                                : "Their bits differ: on one level, sums have another order.\n");
}

}  // namespace ddp
