#include "tests/chapters/20_transformer/twin.hpp"

#include <fstream>
#include <iomanip>
#include <span>

#include "20_transformer/words/byte_pairs.hpp"
#include "20_transformer/words/numerals.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

std::string list_of(std::span<const int> numbers) {
    std::string list;
    for (const int number : numbers)
        list += (list.empty() ? "" : ",") + std::to_string(number);
    return list;
}

// Writes the weights that a training of `plan` begins with.
void write_weights(std::ofstream& file, const TranslationPlan& plan, int vocabulary) {
    Device device;
    DropoutMasks masks(plan.seed);
    Random random(plan.seed);
    TransformerOptions options = plan.model;
    options.vocabulary = vocabulary;
    const Transformer model(device, options, random, masks);
    for (const auto& parameter : model.parameters()) {
        file << "parameter " << parameter->name;
        for (const float value : parameter->value.to_host())
            file << " " << value;
        file << "\n";
    }
}

}  // namespace

TranslationPlan twin_plan() {
    TranslationPlan plan;
    plan.model = {
        .width = 32, .heads = 4, .layers = 2, .feed_forward = 64, .longest = 40, .dropout = 0};
    plan.vocabulary = 320;
    plan.batch = 14;
    plan.learning_rate = 0.002;
    plan.warm_up = 20;
    plan.smoothing = 0.1;
    plan.report_every = 1;
    return plan;
}

PairCorpus twin_corpus() {
    return numeral_corpus(twin_steps * 14 + 3, 10, 10, 4);
}

void write_reference_input(const std::filesystem::path& path, const PairCorpus& corpus,
                           const TranslationPlan& plan) {
    World world(thread_options(1));
    const TranslationData data = encode_corpus(world, corpus, plan);
    const int vocabulary = data.tokenizer->size();
    const TransformerOptions& model = plan.model;
    std::ofstream file(path);
    file << std::setprecision(9) << "plan " << vocabulary << " " << model.width << " "
         << model.heads << " " << model.layers << " " << model.feed_forward << " "
         << plan.learning_rate << " " << plan.warm_up << " " << plan.smoothing << " " << plan.clip
         << " " << model.dropout << "\n";
    write_weights(file, plan, vocabulary);
    for (const TokenPair& pair : data.train)
        file << "pair " << list_of(pair.source) << " " << list_of(pair.target) << "\n";
    for (int epoch = 1; epoch <= plan.epochs; epoch++) {
        file << "epoch " << epoch << "\n";
        const BatchPlan batches(data.train, plan.batch, plan.seed, epoch);
        for (int i = 0; i < batches.batches(); i++)
            file << "batch " << list_of(batches.samples(i)) << "\n";
    }
    for (const SentencePair& pair : data.corpus.test)
        file << "held_out " << list_of(data.tokenizer->encode(pair.source)) << " " << pair.target
             << "\n";
    const auto& tokenizer = dynamic_cast<const BytePairs&>(*data.tokenizer);
    for (int token = first_free_token; token < vocabulary; token++) {
        file << "token " << token << " ";
        for (const unsigned char byte : tokenizer.spelling(token))
            file << "0123456789abcdef"[byte / 16] << "0123456789abcdef"[byte % 16];
        file << "\n";
    }
    REQUIRE(file.good());
}

std::vector<double> reference_losses() {
    std::ifstream golden(REFERENCE_LOSSES);
    std::vector<double> losses;
    for (std::string line; std::getline(golden, line);)
        if (!line.starts_with("#"))
            losses.push_back(std::stod(line));
    REQUIRE(losses.size() == twin_steps);
    REQUIRE(losses.back() < 0.8 * losses.front());
    return losses;
}

}  // namespace ddp::test
