#include "20_transformer/show/five_report.hpp"

#include <algorithm>
#include <iostream>
#include <set>

#include "03_network/loader.hpp"
#include "11_data_parallel/replica.hpp"
#include "20_transformer/token_loss.hpp"
#include "20_transformer/translation_training.hpp"
#include "20_transformer/words/numerals.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

// ---- What both programs use

RandomSplit random_split(std::size_t pairs, std::uint64_t seed) {
    const std::vector<int> order = shuffled(static_cast<int>(pairs), seed, 1);
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(pairs * 9 / 10);
    return {{order.begin(), end}, {end, order.end()}};
}

std::vector<TokenBatch> batches_of(const std::vector<TokenPair>& pairs,
                                   const std::vector<int>& numbers, int batch) {
    const auto size = static_cast<std::size_t>(batch);
    std::vector<TokenBatch> batches;
    for (std::size_t first = 0; first < numbers.size(); first += size) {
        std::vector<TokenPair> some;
        for (std::size_t i = first; i < std::min(first + size, numbers.size()); i++)
            some.push_back(pairs[static_cast<std::size_t>(numbers[i])]);
        batches.push_back(BatchPlan(some, static_cast<int>(some.size()), 0, 0).batch(0, 0, 1));
    }
    return batches;
}

std::vector<int> at_places(const std::vector<int>& list, const std::vector<int>& places) {
    std::vector<int> entries;
    for (const int place : places)
        entries.push_back(list[static_cast<std::size_t>(place)]);
    return entries;
}

LossSum validate(Device& device, Transformer& model, const std::vector<TokenBatch>& batches) {
    Tape tape(device);
    LossSum sum;
    for (const TokenBatch& batch : batches) {
        const DeviceBatch tokens = to_device(device, batch);
        const Variable scores = model.forward(tape, tokens.source, tokens.target_in);
        sum.loss += token_loss(scores, tokens.target_out, 0.0, 1.0).value().to_host()[0];
        sum.tokens += batch.target_tokens;
        tape.clear();
    }
    return sum;
}

void print_epoch(int epoch, double loss, const LossSum& validation) {
    std::cout << "epoch " << epoch << "  loss " << format_fixed(loss, 4) << "  validation "
              << format_fixed(validation.loss / validation.tokens, 4) << std::endl;
}

// ---- The evidence

namespace {

// Returns a text with an x at each of these places, to send it.
std::string marked(const std::vector<int>& places, std::size_t all) {
    std::string text(all, ' ');
    for (const int place : places)
        text[static_cast<std::size_t>(place)] = 'x';
    return text;
}

}  // namespace

FiveEvidence evidence_of(Rank& rank, const FivePlan& plan, const FiveSeen& mine) {
    FiveEvidence evidence;
    const std::vector<std::string> hashes = rank.all_gather(mine.hash);
    evidence.different_replicas = static_cast<int>(std::set(hashes.begin(), hashes.end()).size());
    evidence.drift = mine.drift;
    const auto& [first, second] = std::pair(mine.orders.at(0), mine.orders.at(1));
    int same = 0;
    for (std::size_t i = 0; i < first.size(); i++)
        same += first[i] == second[i];
    evidence.same_order = static_cast<double>(same) / static_cast<double>(first.size());
    // Which of rank 0's sentences for validation does some rank learn from?
    const std::size_t pairs = plan.pairs.size();
    const std::vector<std::string> learned = rank.all_gather(marked(mine.orders.at(0), pairs));
    const std::string validated = rank.broadcast(marked(mine.validated, pairs), 0);
    for (std::size_t i = 0; i < pairs; i++)
        if (validated[i] == 'x') {
            evidence.validated++;
            evidence.leaked +=
                std::ranges::any_of(learned, [&](const auto& places) { return places[i] == 'x'; });
        }
    evidence.logged_loss = rank.broadcast(mine.printed_loss, 0);
    evidence.loss = rank.mean_over_ranks(mine.own_loss);
    const double waiting = rank.mean_over_ranks(mine.waiting_s) * rank.world_size();
    const double validating = rank.mean_over_ranks(mine.validating_s) * rank.world_size();
    evidence.waiting = waiting / (waiting + validating);
    return evidence;
}

FivePlan five_plan(World& world, bool quick) {
    TranslationPlan sizes;
    sizes.vocabulary = 320;
    TranslationData data = encode_corpus(world, numeral_corpus(quick ? 160 : 640, 64, 1, 1), sizes);
    return {std::move(data.train),
            {.vocabulary = data.tokenizer->size(),
             .width = 32,
             .heads = 2,
             .layers = 1,
             .feed_forward = 64,
             .dropout = 0}};
}

void show_five_mistakes(World& world, const CommonOptions& common) {
    const FivePlan plan = five_plan(world, common.quick);
    FiveEvidence wrong, right;
    const auto run = [&](const std::string& name, auto train, FiveEvidence& evidence) {
        if (world.has_rank_0())
            std::cout << name << "\n";
        world.run([&](Rank& rank) {
            const FiveEvidence found = evidence_of(rank, plan, train(rank, plan));
            if (rank.rank() == 0)
                evidence = found;
        });
    };
    if (loads_kernels())
        world.run([&](Rank& r) { compute_every_size(r, plan.pairs, plan.model, plan.batch); });
    run("With five mistakes:", train_with_five_mistakes, wrong);
    run("Mended:", train_mended, right);
    if (!world.has_rank_0())
        return;
    Table table("Five mistakes that nobody reports",
                {"", "what is seen", "with the mistakes", "mended"});
    const auto row = [&](const std::string& number, const std::string& what, auto text) {
        table.row({number, what, text(wrong), text(right)});
    };
    using Seen = const FiveEvidence&;
    row("1", "replicas that differ",
        [](Seen seen) { return std::to_string(seen.different_replicas); });
    row("", "distance of a replica from rank 0's",
        [](Seen seen) { return format_percent(seen.drift); });
    row("2", "places in epoch 2 with the sentence of epoch 1",
        [](Seen seen) { return format_percent(seen.same_order); });
    row("3", "sentences to validate with that some rank learned", [](Seen seen) {
        return std::to_string(seen.leaked) + " of " + std::to_string(seen.validated);
    });
    row("4", "the printed loss", [](Seen seen) { return format_fixed(seen.logged_loss, 4); });
    row("", "the mean of all ranks' losses", [](Seen seen) { return format_fixed(seen.loss, 4); });
    row("5", "share of the ranks' time in validation that they only wait",
        [](Seen seen) { return format_percent(seen.waiting); });
    std::cout << table << std::endl;
}

}  // namespace ddp
