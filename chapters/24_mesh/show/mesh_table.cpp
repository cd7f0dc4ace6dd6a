#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "24_mesh/show/reports.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

std::vector<MeshShape> all_shapes(int ranks) {
    std::vector<MeshShape> shapes;
    for (int dp = ranks; dp >= 1; dp--)
        for (int pp = ranks; pp >= 1; pp--)
            if (ranks % (dp * pp) == 0 && pp <= 4)
                shapes.push_back({dp, pp, ranks / (dp * pp)});
    return shapes;
}

namespace {

// Rank 0 trains alone. The others meet it after each step: they wait no longer than for that.
MeshResult train_on_rank_0(Rank& rank, Device& device, const MeshPlan& plan) {
    if (rank.rank() == 0)
        return train_on_one_rank(device, plan, [&] { rank.barrier(); });
    for (int step = 0; step < plan.steps; step++)
        rank.barrier();
    return {};
}

}  // namespace

void show_meshes(Rank& rank, const MeshPlan& plan, const std::vector<MeshShape>& shapes,
                 const std::filesystem::path& path) {
    const bool prints = rank.rank() == 0;
    CsvWriter csv(prints ? path : "",
                  {"dp", "pp", "tp", "loss", "hash", "hash_of_one_rank", "parameter_bytes",
                   "activation_bytes", "predicted_activation_bytes", "seconds_per_step",
                   "bytes_leaving_node"});
    Table table("One model, " + std::to_string(plan.steps) + " steps",
                {"dp x pp x tp", "hash", "one rank", "loss, against 1 x 1 x 1", "parameters",
                 "activations", "predicted"});
    const auto kib = [](std::size_t bytes) {
        return format_fixed(static_cast<double>(bytes) / 1024, 0) + " KiB";
    };
    Device device(prints ? std::size_t{64} << 20 : 0);
    std::optional<double> whole;  // the loss with whole matrices
    for (const MeshShape& shape : shapes) {
        MeshPlan own = plan;
        own.shape = shape;
        own.micro_batches = std::max(1, plan.micro_batches / shape.dp);
        const MeshResult mesh = train_on_mesh(rank, own);
        const MeshResult one = train_on_rank_0(rank, device, own);
        if (!whole)
            whole = train_on_rank_0(rank, device, plan).last_loss;
        if (!prints)
            continue;
        // (An all-reduce of parts on several nodes has two levels, and another order.)
        if (mesh.hash != one.hash && shape.dp <= 2 && shape.tp <= rank.local_world_size())
            throw std::runtime_error("a mesh of " + shape.text() +
                                     " must end in the bits of one rank, and does not");
        const std::size_t predicted = predicted_activations(own, 0);
        std::ostringstream off;
        off << std::setprecision(0) << std::scientific << std::abs(mesh.last_loss / *whole - 1);
        table.row({shape.text(), mesh.hash, mesh.hash == one.hash ? "same bits" : "other bits",
                   off.str(), kib(mesh.parameters), kib(mesh.activations), kib(predicted)});
        csv.row({shape.dp, shape.pp, shape.tp, mesh.last_loss, mesh.hash, one.hash, mesh.parameters,
                 mesh.activations, predicted, mesh.seconds_per_step, mesh.bytes_leaving_node});
        if (mesh.bytes_leaving_node > 0)
            table.note(shape.text() + ": " + format_bytes(mesh.bytes_leaving_node) +
                       " leave rank 0's node per step.");
    }
    if (!prints)
        return;
    table.note(
        "One rank: it takes the same sums in the same order. Parameters, activations and "
        "their prediction: of rank 0.");
    std::cout << table << "\n";
}

}  // namespace ddp
