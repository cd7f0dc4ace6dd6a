// Stage 3 learns what PyTorch learns: from the same weights, with the same sentences, the
// transformer of chapter 20 has the losses of the reference run, in which one process has the whole
// model. fully_shard_test.py lays PyTorch's fully_shard beside it.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iomanip>

#include "03_network/layers/fused_optimizers.hpp"
#include "20_transformer/token_loss.hpp"
#include "20_transformer/translation_training.hpp"
#include "22_sharded/sharded.hpp"
#include "tests/chapters/20_transformer/twin.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Trains through one epoch at stage 3 as chapter 20 does, and returns the loss of each step: the
// mean over the tokens of all ranks.
std::vector<double> train_sharded(Rank& rank, const TranslationData& data,
                                  const TranslationPlan& plan) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    DropoutMasks masks(plan.seed);
    // The other ranks' own weights must not matter: rank 0's are those of the reference run.
    Random random(plan.seed + static_cast<std::uint64_t>(rank.rank()));
    TransformerOptions options = plan.model;
    options.vocabulary = data.tokenizer->size();
    Transformer model(device, options, random, masks);
    const Blocks blocks = blocks_of(model);
    const auto communicator = make_communicator(
        "native", rank, ShardedDataParallel::arena_bytes(blocks, rank.world_size(), 3));
    ShardedDataParallel sharded(*communicator, device, blocks, 3);
    FusedAdam optimizer(sharded.chunks(), plan.learning_rate);
    Tape tape(device);
    std::vector<double> losses;
    const BatchPlan batches(data.train, plan.batch, plan.seed, 1);
    for (int i = 0; i < batches.batches(); i++) {
        const TokenBatch share = batches.batch(i, rank.rank(), rank.world_size());
        const DeviceBatch tokens = to_device(device, share);
        const double divisor = static_cast<double>(share.all_target_tokens) / rank.world_size();
        const Variable scores =
            sharded.forward([&] { return model.forward(tape, tokens.source, tokens.target_in); });
        const Variable loss = token_loss(scores, tokens.target_out, plan.smoothing, divisor);
        sharded.backward(loss);
        sharded.clip_grad_norm(plan.clip);
        optimizer.set_learning_rate(learning_rate_at(i + 1, plan.learning_rate, plan.warm_up));
        optimizer.step();
        optimizer.zero_gradients();
        sharded.after_step();
        losses.push_back(rank.mean_over_ranks(loss.value().to_host()[0]));
        tape.clear();
    }
    communicator->synchronize(device.stream());
    rank.barrier();
    return losses;
}

// Returns the losses of that training on `ranks` ranks.
std::vector<double> twin_losses(int ranks) {
    World world(thread_options(ranks));
    const TranslationPlan plan = twin_plan();
    const TranslationData data = encode_corpus(world, twin_corpus(), plan);
    std::vector<double> losses;
    world.run([&](Rank& rank) {
        const std::vector<double> all = train_sharded(rank, data, plan);
        if (rank.rank() == 0)
            losses = all;
    });
    return losses;
}

}  // namespace

TEST_CASE("twin: 50 steps of stage 3 have the losses of one PyTorch process") {
    const std::vector<double> expected = reference_losses();
    for (const int ranks : {2, 3}) {
        const std::vector<double> losses = twin_losses(ranks);
        REQUIRE(losses.size() == twin_steps);
        for (std::size_t i = 0; i < losses.size(); i++) {
            CAPTURE(ranks, i);
            REQUIRE(std::abs(losses[i] - expected[i]) < 1e-5);
        }
    }
}

// What fully_shard_test.py lays beside PyTorch's; not a test.
TEST_CASE("twin: its input for fully_shard, and its losses on two ranks", "[.fully_shard]") {
    const char *input = std::getenv("REFERENCE_INPUT"), *path = std::getenv("SHARDED_LOSSES");
    REQUIRE(input != nullptr);
    REQUIRE(path != nullptr);
    write_reference_input(input, twin_corpus(), twin_plan());
    std::ofstream file(path);
    file << std::setprecision(9);
    for (const double loss : twin_losses(2))
        file << loss << "\n";
    REQUIRE(file.good());
}

}  // namespace ddp::test
