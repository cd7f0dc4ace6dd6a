#include "tests/bench/20_transformer/uneven_tokens.hpp"

#include <cmath>
#include <iostream>

#include "10_nodes/make_communicator.hpp"
#include "15_overlap/ddp.hpp"
#include "20_transformer/token_loss.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int sentences_of_each = 4;

// Returns all gradients, one behind the other, and makes them absent.
std::vector<float> take_gradients(const Parameters& parameters) {
    std::vector<float> all;
    for (const auto& parameter : parameters) {
        const std::vector<float> values = parameter->gradient().to_host();
        all.insert(all.end(), values.begin(), values.end());
        parameter->clear_gradient();
    }
    return all;
}

// Returns |a - b| / |b|.
double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0, whole = 0;
    for (std::size_t i = 0; i < b.size(); i++) {
        difference += std::pow(a[i] - b[i], 2);
        whole += std::pow(b[i], 2);
    }
    return std::sqrt(difference / whole);
}

}  // namespace

UnevenTokens uneven_tokens(Rank& rank, const TranslationData& data, const TranslationPlan& plan) {
    const int ranks = rank.world_size();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    DropoutMasks masks(plan.seed);
    Random random(plan.seed);
    TransformerOptions options = plan.model;
    options.vocabulary = data.tokenizer->size();
    options.dropout = 0;
    Transformer model(device, options, random, masks);
    const auto communicator = make_communicator("native", rank, ddp_arena_bytes(model));
    DistributedDataParallel replica(*communicator, device, model);
    Tape tape(device);
    // A pool of 1: the sentences of a batch are not sorted by length.
    const BatchPlan batches(data.train, sentences_of_each * ranks, plan.seed, 1, 1);

    // The right one: each rank learns from the whole batch, and nothing is averaged.
    const TokenBatch whole = batches.batch(0, 0, 1);
    const DeviceBatch all = to_device(device, whole);
    tape.backward(token_loss(model.forward(tape, all.source, all.target_in), all.target_out, 0.0,
                             whole.all_target_tokens));
    const std::vector<float> right = take_gradients(model.parameters());
    tape.clear();
    rank.barrier();

    // This rank's share of these sentences.
    const TokenBatch share = batches.batch(0, rank.rank(), ranks);
    const DeviceBatch mine = to_device(device, share);
    const auto distance_with = [&](double divisor) {
        const Variable scores =
            replica.forward([&] { return model.forward(tape, mine.source, mine.target_in); });
        replica.backward(token_loss(scores, mine.target_out, 0.0, divisor));
        const double distance = relative_distance(take_gradients(model.parameters()), right);
        tape.clear();
        return distance;
    };
    UnevenTokens found;
    found.tokens = rank.all_gather(share.target_tokens);
    found.by_own_tokens = distance_with(share.target_tokens);
    found.by_all_tokens = distance_with(static_cast<double>(share.all_target_tokens) / ranks);
    return found;
}

void show_uneven_tokens(World& world, const TranslationData& data, const TranslationPlan& plan) {
    UnevenTokens found;
    world.run([&](Rank& rank) {
        rank.select_device();
        const UnevenTokens mine = uneven_tokens(rank, data, plan);
        if (rank.rank() == 0)
            found = mine;
    });
    if (!world.has_rank_0())
        return;
    std::string tokens;
    for (const int count : found.tokens)
        tokens += (tokens.empty() ? "" : ", ") + std::to_string(count);
    Table table("The averaged gradient of a step, in which the ranks have " + tokens + " tokens",
                {"each rank divides its loss by", "distance from the gradient of the whole batch"});
    table.row({"its own tokens", format_percent(found.by_own_tokens)});
    table.row({"the tokens of all ranks / the number of ranks",
               format_fixed(100 * found.by_all_tokens, 5) + " %"});
    std::cout << table << std::endl;
}

}  // namespace ddp
