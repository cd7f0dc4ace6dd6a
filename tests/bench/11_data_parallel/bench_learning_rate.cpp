// How must the learning rate change with more ranks? Trains one rank, and several with the same
// rate, a scaled one, and one that grows to it. All see the same pictures equally often.
#include <algorithm>
#include <iostream>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/small_training.hpp"
#include "03_network/models.hpp"
#include "03_network/training.hpp"
#include "05_ranks/world.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/naive_ddp.hpp"
#include "11_data_parallel/replica.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct RateOptions {
    double learning_rate = 0.02;  // of one rank
    int epochs = 6;
    int pictures = 12'000;
    int batch = 64;
};

struct Variant {
    std::string name;
    bool is_alone;       // only rank 0 trains, and the others wait
    double factor;       // of the learning rate
    double warm_up = 0;  // the share of all steps in which the rate grows to that
};

struct Row {
    int steps = 0;
    double loss = 0, accuracy = 0;
};

// Trains as the variant says, and returns a row for each epoch on rank 0.
std::vector<Row> learn(Rank& rank, const FashionMnist& data, const RateOptions& options,
                       const Variant& variant, std::uint64_t seed) {
    const bool takes_part = rank.rank() == 0 || !variant.is_alone;
    const int part = variant.is_alone ? 0 : rank.rank();
    const int parts = variant.is_alone ? 1 : rank.world_size();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    const auto communicator = make_communicator("native", rank, 4 << 20);
    Random random(seed);
    const auto model = make_mlp(device, random, mlp_widths(data.train, {256, 256}));
    auto& train = make_run_scoped<Loader>(rank, device, data.train, fashion_mnist_normalisation,
                                          options.batch, LastBatch::drop);
    auto& test = make_run_scoped<Loader>(rank, device, data.test, fashion_mnist_normalisation,
                                         std::min(500, static_cast<int>(data.test.count())));
    NaiveDdp ddp(*communicator, device, *model);
    Sgd optimizer(model->parameters(), options.learning_rate);
    SmallTraining training(device, optimizer);
    Metrics metrics(device);
    const int pictures = std::min(options.pictures, train.samples());
    const int all_steps = options.epochs * (pictures / parts / options.batch);
    std::vector<Row> rows;
    int steps = 0;
    for (int epoch = 1; epoch <= options.epochs; epoch++) {
        rank.barrier();  // also for the ranks that wait
        if (!takes_part)
            continue;
        train.start_epoch(shard(shuffled(pictures, seed, epoch), part, parts));
        model->set_training(true);
        metrics.reset();
        while (const std::optional<Batch> batch = train.next()) {
            const double grown = variant.warm_up * all_steps;
            optimizer.set_learning_rate(options.learning_rate * variant.factor *
                                        std::min(1.0, grown > 0 ? ++steps / grown : 1.0));
            training.step(
                [&](Tape& tape) {
                    const Variable logits = model->forward(tape.constant(batch->images));
                    const Variable loss = cross_entropy(logits, batch->labels);
                    metrics.add(loss.value(), logits.value(), batch->labels);
                    return loss;
                },
                [&](Variable loss) {
                    loss.tape->backward(loss);
                    if (!variant.is_alone)
                        ddp.average_gradients();
                });
        }
        const double loss = metrics.read().loss();
        if (rank.rank() == 0) {
            test.start_epoch(in_order(test.samples()));
            rows.push_back({epoch * all_steps / options.epochs, loss,
                            evaluate(device, *model, test).accuracy()});
        }
    }
    rank.barrier();
    return rows;
}

void compare(Rank& rank, const FashionMnist& data, const RateOptions& options,
             const CommonOptions& common) {
    rank.select_device();
    const int ranks = rank.world_size();
    const std::string all = format_count(ranks, "rank");
    const std::vector<Variant> variants{
        {"1 rank", true, 1},
        {all + ", the same rate", false, 1},
        {all + ", " + std::to_string(ranks) + " times the rate", false, double(ranks)},
        {all + ", " + std::to_string(ranks) + " times after a warm-up", false, double(ranks), 0.3}};
    std::vector<std::string> header{"", "steps"};
    for (int epoch = 1; epoch <= options.epochs; epoch++)
        header.push_back("epoch " + std::to_string(epoch));
    Table table("Test accuracy after each epoch, with " + std::to_string(options.batch) +
                    " pictures a step and rank",
                header);
    std::optional<CsvWriter> csv;
    if (rank.rank() == 0)
        csv.emplace(common.csv, std::vector<std::string>{"training", "epoch", "loss", "accuracy"});
    for (const Variant& variant : variants) {
        const std::vector<Row> rows = learn(rank, data, options, variant, common.seed);
        if (rank.rank() != 0)
            continue;
        std::vector<std::string> cells{variant.name, std::to_string(rows.back().steps)};
        for (std::size_t epoch = 0; epoch < rows.size(); epoch++) {
            cells.push_back(format_fixed(rows[epoch].accuracy, 3));
            csv->row({variant.name, epoch + 1, rows[epoch].loss, rows[epoch].accuracy});
        }
        table.row(cells);
    }
    table.note("The rate of one rank is " + format_fixed(options.learning_rate, 4) +
               "; the warm-up takes three tenths of the steps.");
    if (rank.rank() == 0)
        std::cout << table << "\n";
}

}  // namespace

int main(int argc, char** argv) {
    RateOptions options;
    Options parser("bench_learning_rate", "How must the learning rate change with the ranks?");
    parser.add_double("--learning-rate", options.learning_rate, {1e-9, 1e6}, "of one rank");
    parser.add_int("--epochs", options.epochs, {1, 1000}, "how often to see each picture");
    parser.with_quick("--epochs", [&] { options.epochs = 2; });
    parser.add_int("--pictures", options.pictures, {1, 60'000}, "how many of them");
    parser.add_int("--batch", options.batch, {1, 10'000}, "pictures per step and rank");
    parser.refuse({"--link", "--trace"}, "this bench prints one table");
    parser.example("--ranks 8", "one rank against eight");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        const FashionMnist data = load_data(world, common);
        require_batch(options.batch * world.world_size(), data.train);
        world.run([&](Rank& rank) { compare(rank, data, options, common); });
        return 0;
    });
}
