// A training of your own, on as many ranks as --ranks or --processes says: rows of numbers with a
// label, a network, DistributedDataParallel.
//
//     1. every rank reads the same rows, and takes its own share of them in each epoch
//     2. forward, loss, backward (which averages the gradients over the ranks), step
//     3. all ranks must have the same parameters, to the bit
#include <filesystem>
#include <iostream>

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "05_ranks/world.hpp"
#include "10_nodes/make_communicator.hpp"
#include "12_sampler/sampler.hpp"
#include "15_overlap/ddp.hpp"
#include "common/data/labelled_rows.hpp"

namespace {

using namespace ddp;

struct Settings {
    int epochs = 10, batch = 32;
    double learning_rate = 0.05;
};

// Without --data: points of a plane, in two rings around each other.
LabelledRows two_rings(std::uint64_t seed) {
    Random random(seed);
    LabelledRows rows{2, 2, {}, {}};
    while (rows.count() < 2048) {
        const float x = random.uniform(-1, 1), y = random.uniform(-1, 1);
        rows.values.insert(rows.values.end(), {x, y});
        rows.labels.push_back(x * x + y * y < 0.5f);
    }
    return rows;
}

LabelledRows load(const CommonOptions& common) {
    LabelledRows rows =
        common.data.empty() ? two_rings(common.seed) : read_labelled_rows(common.data);
    normalise_columns(rows);
    return rows;
}

// Copies rows indices[first], ... to the device.
std::pair<Tensor, Labels> batch_of(Device& device, const LabelledRows& rows,
                                   const std::vector<int>& indices, int first, int count) {
    std::vector<float> values;
    std::vector<int> labels;
    for (int i = first; i < first + count; i++) {
        const int row = indices[static_cast<std::size_t>(i)];
        const auto begin = rows.values.begin() + row * rows.columns;
        values.insert(values.end(), begin, begin + rows.columns);
        labels.push_back(rows.labels[static_cast<std::size_t>(row)]);
    }
    return {Tensor(device, {count, rows.columns}, values), Labels(device, {count}, labels)};
}

void train(Rank& rank, const LabelledRows& rows, const Settings& options,
           const CommonOptions& common) {
    rank.select_device();
    if (rank.rank() == 0)
        std::cout << rows.about;
    // Device memory: parameters, gradients and momentum, and what a forward keeps. If it is too
    // little, a sentence says so.
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    Random random(common.seed);
    const auto model = make_mlp(device, random, {rows.columns, 64, 64, rows.classes});
    const auto communicator = make_communicator("native", rank, ddp_arena_bytes(*model));
    DistributedDataParallel replica(*communicator, device, *model);
    Sgd optimizer(model->parameters(), options.learning_rate);
    DistributedSampler sampler(rows.count(), rank.rank(), rank.world_size(), {.seed = common.seed});
    Tape tape(device);
    for (int epoch = 1; epoch <= options.epochs; epoch++) {
        sampler.set_epoch(epoch);
        const std::vector<int> indices = sampler.indices();
        double sum = 0;
        int steps = 0;
        for (int first = 0; first < sampler.samples_per_rank(); first += options.batch) {
            const int count = std::min(options.batch, sampler.samples_per_rank() - first);
            const auto [values, labels] = batch_of(device, rows, indices, first, count);
            const Variable loss = cross_entropy(replica.forward(tape.constant(values)), labels);
            replica.backward(loss);
            optimizer.step();
            optimizer.zero_gradients();
            sum += loss.value().to_host()[0];
            steps++;
            tape.clear();
        }
        if (rank.rank() == 0)
            std::cout << "epoch " << epoch << "  loss of rank 0 " << sum / steps << "\n";
    }
    require_equal_replicas(rank, model->parameters());
    const std::string hash = text_of_hash(hash_of(model->parameters()));
    if (rank.rank() == 0)
        std::cout << text_of_equal_replicas(rank.world_size(), hash) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
    Settings options;
    Options parser("training", "A training of my own.");
    parser.add_int("--epochs", options.epochs, {1, 10'000}, "how often to see each row");
    parser.add_int("--batch", options.batch, {1, 60'000}, "rows a step and rank");
    parser.add_double("--learning-rate", options.learning_rate, {1e-12, 1e6}, "length of a step");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        LabelledRows rows;
        world.prepare([&] { rows = load(common); });
        world.run([&](Rank& rank) { train(rank, rows, options, common); });
        return 0;
    });
}
