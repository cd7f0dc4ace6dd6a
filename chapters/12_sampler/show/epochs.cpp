#include "12_sampler/show/epochs.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "03_network/loader.hpp"
#include "03_network/models.hpp"
#include "03_network/training.hpp"
#include "06_messages/support/kernel_loading.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/naive_ddp.hpp"
#include "11_data_parallel/training_result.hpp"
#include "12_sampler/mistakes.hpp"
#include "common/report/units.hpp"

namespace ddp {

Epoch learn(Rank& rank, Device& device, const LabelledImages& images,
            const std::vector<int>& indices, int batch, std::uint64_t seed, Gradients gradients) {
    constexpr std::size_t arena_bytes = 32 << 20;
    Random random(seed);
    std::unique_ptr<Sequential> model = make_mlp(device, random, mlp_widths(images));
    const auto communicator = make_communicator("native", rank, arena_bytes);
    NaiveDdp ddp(*communicator, device, *model);
    auto& loader =
        make_run_scoped<Loader>(rank, device, images, fashion_mnist_normalisation, batch);
    loader.start_epoch(indices);
    model->set_training(true);
    rank.barrier();
    FirstPass last_batch;  // a smaller one has products of shapes of its own
    const int last = (static_cast<int>(indices.size()) - 1) / batch;
    int step = 0;
    const TrainingResult result = train(device, *model, loader, [&] {
        if (gradients == Gradients::own)
            return;
        if (step == last)
            last_batch.meet(rank, device.stream());
        ddp.average_gradients();
        if (++step == last)
            last_batch.meet(rank, device.stream());
    });
    rank.barrier();  // a rank that goes on may allocate: no kernel is under way any more
    const auto steps = static_cast<int>(result.losses.size());
    return {std::move(model), steps, steps * result.step_s};
}

Metrics::Totals measure(Rank& rank, Device& device, Sequential& model, const LabelledImages& images,
                        int pictures, int batch) {
    auto& loader =
        make_run_scoped<Loader>(rank, device, images, fashion_mnist_normalisation, batch);
    loader.start_epoch(unpadded_indices(pictures, rank.rank(), rank.world_size()));
    return add_up(rank, evaluate(device, model, loader));
}

void show_no_sampler(Rank& rank, Device& device, const LabelledImages& images, int batch,
                     std::uint64_t seed) {
    const int ranks = rank.world_size();
    const int steps = std::min(10, static_cast<int>(images.count()) / batch);
    const std::vector<int> indices = divided(Division::forgotten, steps * batch, 0, ranks, seed);
    const Epoch together = learn(rank, device, images, indices, batch, seed);
    const Epoch alone = learn(rank, device, images, indices, batch, seed, Gradients::own);
    const Parameters left = together.model->parameters(), right = alone.model->parameters();
    float largest = 0;
    for (std::size_t p = 0; p < left.size(); p++) {
        const std::vector<float> a = left[p]->value.to_host(), b = right[p]->value.to_host();
        for (std::size_t i = 0; i < a.size(); i++)
            largest = std::max(largest, std::abs(a[i] - b[i]));
    }
    const double difference = rank.max_over_ranks(largest);
    if (rank.rank() == 0)
        std::cout << "Without a sampler, " << format_count(ranks, "rank") << " after "
                  << format_count(steps, "step") << " and one rank that trained alone: parameters"
                  << "\ndiffer by at most " << difference << ".\n\n";
}

}  // namespace ddp
