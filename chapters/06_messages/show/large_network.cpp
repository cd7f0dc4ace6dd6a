#include <iostream>

#include "06_messages/show/stage_report.hpp"
#include "06_messages/stage.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int all_layers = 4, large_width = 2048, samples = 8;

// A rank of one step: text for the table, and the reason if there was no room.
struct Attempt {
    std::string held = "", lacks = "";
    double loss = 0;
};

// Reserves all memory of a step of these layers: values and gradients, and some for the batch.
// Returns nothing, and says why, if the device has no room for it.
std::unique_ptr<Device> reserve(int layers_of_rank, std::string& lacks) {
    constexpr std::size_t layer_bytes =
        (std::size_t{large_width} * large_width + large_width) * sizeof(float);
    const std::size_t of_layers = static_cast<std::size_t>(layers_of_rank) * layer_bytes;
    try {
        return std::make_unique<Device>(2 * of_layers + (std::size_t{2} << 20));
    } catch (const GpuError& error) {
        if (cudaGetLastError() != cudaErrorMemoryAllocation)
            throw;
        lacks = error.what();
        return nullptr;
    }
}

// Takes one step with the network on ranks 0 to stages - 1.
Attempt step(Peers& peers, int stages) {
    Rank& rank = peers.rank();
    Attempt attempt;
    const bool has_stage = rank.rank() < stages;
    const std::unique_ptr<Device> device =
        has_stage ? reserve(all_layers / stages, attempt.lacks) : nullptr;
    std::unique_ptr<Sequential> layers_of_stage;
    std::optional<Stage> stage;
    if (device) {
        const int first = all_layers / stages * rank.rank();
        layers_of_stage =
            make_layers(*device, first, first + all_layers / stages, all_layers, large_width);
        stage.emplace(peers, *device, *layers_of_stage, stages, large_width);
        stage->rehearse(samples);
    }
    // Nobody begins a step that another rank cannot take.
    bool has_room = true;
    for (const std::string& lacks : rank.all_gather(attempt.lacks))
        has_room = has_room && lacks.empty();
    if (stage && has_room) {
        const Tensor inputs(*device, {samples, large_width},
                            std::vector<float>(samples * large_width, 0.5f));
        const Labels labels(*device, {samples}, std::vector<int>(samples, 1));
        attempt.loss = stage->accumulate(inputs, labels, samples);
        attempt.held = format_bytes(static_cast<double>(device->memory().peak_bytes));
    }
    rank.barrier();  // no memory is freed while a kernel waits
    return attempt;
}

}  // namespace

void show_large_network(Rank& rank) {
    rank.select_device();
    Peers peers(rank, 4 << 20);
    Table table("One step of a network of 64 MiB, whose gradients take as much",
                {"the network is on", "rank 0 holds", "rank 1 holds", "loss"});
    for (const int stages : {1, 2}) {
        const Attempt mine = step(peers, stages);
        const std::vector<std::string> held = rank.all_gather(mine.held);
        const std::vector<std::string> lacks = rank.all_gather(mine.lacks);
        const double loss = rank.broadcast(mine.loss, stages - 1);
        const auto cell = [&](std::size_t r) {
            return !lacks[r].empty() ? "out of memory" : held[r].empty() ? "-" : held[r];
        };
        table.row({stages == 1 ? "one rank" : "two ranks", cell(0), cell(1),
                   held[0].empty() ? "-" : format_fixed(loss, 4)});
        if (!lacks[0].empty())
            table.note(lacks[0]);
    }
    if (rank.rank() == 0)
        std::cout << table << "\n";
}

}  // namespace ddp
