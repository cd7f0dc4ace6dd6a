// Trains a small transformer on several ranks. It runs, prints a loss that falls, and ends well.
// Five of its lines are wrong, and nothing says so. Which?
#include "20_transformer/show/find_five.hpp"

#include <random>

#include "03_network/optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/support/drift.hpp"
#include "12_sampler/sampler.hpp"
#include "15_overlap/ddp.hpp"
#include "20_transformer/token_loss.hpp"
#include "20_transformer/translation_training.hpp"
#include "common/report/bench.hpp"

namespace ddp {

FiveSeen train_with_five_mistakes(Rank& rank, const FivePlan& plan) {
    FiveSeen seen;
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));

    // The sentences: nine of ten to learn from, the others to validate with. Each rank learns from
    // a part of the first.
    const RandomSplit split = random_split(plan.pairs.size(), std::random_device{}());
    DistributedSampler sampler(static_cast<int>(split.train.size()), rank.rank(),
                               rank.world_size());

    // The model, a replica of it on each rank, and the optimizer.
    DropoutMasks masks(1);
    Random weights(1);
    Transformer model(device, plan.model, weights, masks);
    const auto communicator =
        make_communicator("native", rank, 2 * ddp_arena_bytes(model) + SharedArena::unit);
    DistributedDataParallel replica(*communicator, device, model);
    Adam optimizer(model.parameters(), 3e-3);
    Drift drift(*communicator, device, model);
    Tape tape(device);
    rank.barrier();

    for (int epoch = 1; epoch <= plan.epochs; epoch++) {
        model.set_training(true);
        LossSum sum;
        const std::vector<int> mine = at_places(split.train, sampler.indices());
        for (const TokenBatch& batch : batches_of(plan.pairs, mine, plan.batch)) {
            const DeviceBatch tokens = to_device(device, batch);
            const Variable scores = model.forward(tape, tokens.source, tokens.target_in);
            const Variable loss = token_loss(scores, tokens.target_out, 0.0, 1.0);
            tape.backward(loss, {}, 1.0f / static_cast<float>(batch.target_tokens));
            optimizer.step();
            optimizer.zero_gradients();
            sum.loss += loss.value().to_host()[0];
            sum.tokens += batch.target_tokens;
            tape.clear();
        }
        seen.orders.push_back(mine);
        seen.own_loss = sum.loss / sum.tokens;
        const double loss = seen.own_loss;

        // Is the model as good on sentences that it has not learned from?
        const Stopwatch validating;
        if (rank.rank() == 0) {
            model.set_training(false);
            const LossSum valid =
                validate(device, model, batches_of(plan.pairs, split.valid, plan.batch));
            print_epoch(epoch, loss, valid);
            seen.printed_loss = loss;
            seen.validating_s += validating.seconds();
        }
        rank.barrier();
        if (rank.rank() != 0)
            seen.waiting_s += validating.seconds();
    }
    seen.hash = text_of_hash(hash_of(model.parameters()));
    seen.drift = drift.measure();
    seen.validated = split.valid;
    return seen;
}

}  // namespace ddp
