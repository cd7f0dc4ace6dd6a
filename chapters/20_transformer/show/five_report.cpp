#include "20_transformer/show/five_report.hpp"

#include <algorithm>
#include <cstring>
#include <iostream>
#include <set>

#include "11_data_parallel/replica.hpp"
#include "20_transformer/byte_pairs.hpp"
#include "20_transformer/token_loss.hpp"
#include "20_transformer/translation_training.hpp"
#include "20_transformer/words/numerals.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

// ---- What both programs use

RandomSplit random_split(std::size_t pairs, Random& random) {
    std::vector<int> numbers(pairs);
    for (std::size_t i = 0; i < pairs; i++)
        numbers[i] = static_cast<int>(i);
    for (std::size_t i = pairs; i > 1; i--)
        std::swap(numbers[i - 1], numbers[random.below(i)]);
    const auto end = numbers.begin() + static_cast<std::ptrdiff_t>(pairs * 9 / 10);
    return {{numbers.begin(), end}, {end, numbers.end()}};
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

// ---- The evidence

FiveEvidence evidence_of(Rank& rank, const FiveSeen& mine, double logged_loss) {
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
    const auto text = [](const std::vector<int>& numbers) {
        return std::string(reinterpret_cast<const char*>(numbers.data()),
                           numbers.size() * sizeof(int));
    };
    const auto numbers = [](const std::string& bytes) {
        std::vector<int> list(bytes.size() / sizeof(int));
        std::memcpy(list.data(), bytes.data(), bytes.size());
        return list;
    };
    std::set<int> learned;
    for (const std::string& bytes : rank.all_gather(text(mine.orders.at(0))))
        for (const int number : numbers(bytes))
            learned.insert(number);
    const std::vector<int> validated = numbers(rank.broadcast(text(mine.validated), 0));
    evidence.validated = static_cast<int>(validated.size());
    evidence.leaked = static_cast<int>(
        std::ranges::count_if(validated, [&](int number) { return learned.contains(number); }));
    evidence.logged_loss = rank.broadcast(logged_loss, 0);
    evidence.loss = rank.mean_over_ranks(mine.own_loss);
    const double waiting = rank.mean_over_ranks(mine.waiting_s) * rank.world_size();
    const double validating = rank.mean_over_ranks(mine.validating_s) * rank.world_size();
    evidence.waiting = waiting / (waiting + validating);
    return evidence;
}

double printed_loss(const FiveSeen& seen) {
    const std::size_t at = seen.printed.find("loss ");
    return at == std::string::npos ? 0 : std::stod(seen.printed.substr(at + 5));
}

FivePlan five_plan(bool quick) {
    const PairCorpus corpus = numeral_corpus(quick ? 160 : 640, 1, 1, 1);
    std::vector<std::string> sentences;
    for (const SentencePair& pair : corpus.train)
        sentences.insert(sentences.end(), {pair.source, pair.target});
    const BytePairs tokenizer = BytePairs::learn(sentences, 320);
    FivePlan plan;
    for (const SentencePair& pair : corpus.train)
        plan.pairs.push_back({tokenizer.encode(pair.source), tokenizer.encode(pair.target)});
    plan.model = {.vocabulary = tokenizer.size(),
                  .width = 32,
                  .heads = 2,
                  .layers = 1,
                  .feed_forward = 64,
                  .dropout = 0};
    return plan;
}

void show_five_mistakes(World& world, const CommonOptions& common) {
    const FivePlan plan = five_plan(common.quick);
    FiveEvidence wrong, right;
    const auto run = [&](const std::string& name, auto train, FiveEvidence& evidence) {
        if (world.has_rank_0())
            std::cout << name << "\n";
        world.run([&](Rank& rank) {
            const FiveSeen seen = train(rank, plan);
            const FiveEvidence found = evidence_of(rank, seen, printed_loss(seen));
            if (rank.rank() == 0)
                evidence = found;
        });
    };
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
