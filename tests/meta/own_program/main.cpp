// A program as a reader writes one, in three files: an autoencoder that squeezes the rows of a CSV
// file into two numbers each.
#include <iostream>

#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "05_ranks/world.hpp"
#include "10_nodes/make_communicator.hpp"
#include "12_sampler/sampler.hpp"
#include "15_overlap/ddp.hpp"
#include "22_sharded/sharded.hpp"  // the last chapter's: ddp::ddp has all
#include "common/data/labelled_rows.hpp"
#include "squared_error.hpp"

using namespace ddp;

static void train(Rank& rank, const LabelledRows& rows, const CommonOptions& common) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    Random random(common.seed);
    const auto model = make_mlp(device, random, {rows.columns, 16, 2, 16, rows.columns});
    const auto communicator = make_communicator(
        "native", rank,
        std::max(ddp_arena_bytes(*model),
                 ShardedDataParallel::arena_bytes(blocks_of(*model), rank.world_size(), 3)));
    DistributedDataParallel replica(*communicator, device, *model);
    Adam optimizer(model->parameters());
    DistributedSampler sampler(rows.count(), rank.rank(), rank.world_size(), {.seed = common.seed});
    Tape tape(device);
    for (int epoch = 0; epoch < 5; epoch++) {
        sampler.set_epoch(epoch);
        std::vector<float> mine;
        for (int row : sampler.indices())
            mine.insert(mine.end(), rows.values.begin() + row * rows.columns,
                        rows.values.begin() + (row + 1) * rows.columns);
        const Tensor batch(device, {sampler.samples_per_rank(), rows.columns}, mine);
        const Variable loss = squared_error(replica.forward(tape.constant(batch)), batch);
        replica.backward(loss);
        optimizer.step();
        optimizer.zero_gradients();
        if (rank.rank() == 0)
            std::cout << "epoch " << epoch << "  loss " << loss.value().to_host()[0] << "\n";
        tape.clear();
    }
    require_equal_replicas(rank, model->parameters());
    if (rank.rank() == 0)
        std::cout << text_of_equal_replicas(rank.world_size(),
                                            text_of_hash(hash_of(model->parameters())))
                  << "\n";
}

int main(int argc, char** argv) {
    Options parser("autoencoder", "Squeezes the rows of --data into two numbers each.");
    return run_ranks(argc, argv, parser, [](World& world, const CommonOptions& common) {
        LabelledRows rows;
        world.prepare([&] { normalise_columns(rows = read_labelled_rows(common.data)); });
        world.run([&](Rank& rank) { train(rank, rows, common); });
        return 0;
    });
}
