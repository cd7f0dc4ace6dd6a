// The program of find_five.cpp without its five mistakes. `diff find_five.cpp five_mended.cpp`
// names them.
#include "20_transformer/show/find_five.hpp"

#include "03_network/optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/support/drift.hpp"
#include "12_sampler/sampler.hpp"
#include "15_overlap/ddp.hpp"
#include "20_transformer/token_loss.hpp"
#include "20_transformer/translation_training.hpp"
#include "common/report/bench.hpp"

namespace ddp {
namespace {

// Returns the sum over all ranks, each of which validates with its part of these pairs.
LossSum validate_together(Rank& rank, Device& device, Transformer& model, const FivePlan& plan,
                          const std::vector<int>& numbers) {
    const std::vector<int> places =
        unpadded_indices(static_cast<int>(numbers.size()), rank.rank(), rank.world_size());
    LossSum sum;
    for (const LossSum& part : rank.all_gather(validate(
             device, model, batches_of(plan.pairs, at_places(numbers, places), plan.batch)))) {
        sum.loss += part.loss;
        sum.tokens += part.tokens;
    }
    return sum;
}

}  // namespace

FiveSeen train_mended(Rank& rank, const FivePlan& plan) {
    FiveSeen seen;
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));

    // The sentences: nine of ten to learn from, the others to validate with. Each rank learns from
    // a part of the first.
    const RandomSplit split = random_split(plan.pairs.size(), 1);  // the same on every rank
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
        sampler.set_epoch(epoch);  // another order in each epoch, the same on all ranks
        LossSum sum;
        const std::vector<int> mine = at_places(split.train, sampler.indices());
        for (const TokenBatch& batch : batches_of(plan.pairs, mine, plan.batch)) {
            const DeviceBatch tokens = to_device(device, batch);
            const Variable scores = replica.forward(
                [&] { return model.forward(tape, tokens.source, tokens.target_in); });
            const Variable loss = token_loss(scores, tokens.target_out, 0.0, 1.0);
            replica.backward(loss, {}, 1.0f / static_cast<float>(batch.target_tokens));
            optimizer.step();
            optimizer.zero_gradients();
            sum.loss += loss.value().to_host()[0];
            sum.tokens += batch.target_tokens;
            tape.clear();
        }
        seen.orders.push_back(mine);
        seen.own_loss = sum.loss / sum.tokens;
        const double loss = rank.mean_over_ranks(seen.own_loss);

        // Is the model as good on sentences that it has not learned from?
        const Stopwatch validating;
        model.set_training(false);
        const LossSum valid = validate_together(rank, device, model, plan, split.valid);
        if (rank.rank() == 0)
            print_epoch(epoch, loss, valid);
        seen.printed_loss = loss;
        seen.validating_s += validating.seconds();
    }
    seen.hash = text_of_hash(hash_of(model.parameters()));
    seen.drift = drift.measure();
    seen.validated = split.valid;
    return seen;
}

}  // namespace ddp
