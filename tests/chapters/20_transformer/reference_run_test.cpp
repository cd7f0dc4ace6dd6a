// The training is PyTorch's: from the same weights, with the same sentences and without dropout, 50
// steps have the losses of a reference run written in PyTorch
// (tests/golden/transformer_reference.py), on one rank and on four.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <span>

#include "20_transformer/byte_pairs.hpp"
#include "20_transformer/show/translation_run.hpp"
#include "20_transformer/translation_training.hpp"
#include "20_transformer/words/numerals.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr int twin_steps = 50;

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

// Writes everything that the reference run needs as text, as REFERENCE_INPUT: the plan, the
// weights, the pairs and which of them are in each batch; for its translations the held-out
// sources, with references, and the bytes of each token.
void write_input(const PairCorpus& corpus, const TranslationPlan& plan) {
    const char* path = std::getenv("REFERENCE_INPUT");
    REQUIRE(path != nullptr);
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

}  // namespace

TEST_CASE("reference run: 50 steps have the losses of PyTorch, on one rank and on four") {
    std::ifstream golden(REFERENCE_LOSSES);
    std::vector<double> expected;
    for (std::string line; std::getline(golden, line);)
        if (!line.starts_with("#"))
            expected.push_back(std::stod(line));
    REQUIRE(expected.size() == twin_steps);
    REQUIRE(expected.back() < 0.8 * expected.front());
    for (const int ranks : {1, 4}) {
        World world(thread_options(ranks));
        const TranslationPlan plan = twin_plan();
        const TranslationData data = encode_corpus(world, twin_corpus(), plan);
        std::vector<double> losses;
        world.run([&](Rank& rank) {
            const TranslationHooks hooks{.on_step = [&](const StepReport& report) {
                if (rank.rank() == 0)
                    losses.push_back(report.loss);
            }};
            train_translation(rank, data, plan, hooks, {});
        });
        REQUIRE(losses.size() == twin_steps);
        for (std::size_t i = 0; i < losses.size(); i++) {
            CAPTURE(ranks, i);
            REQUIRE(std::abs(losses[i] - expected[i]) < 1e-5);
        }
    }
}

// What transformer_reference.py reads; not tests.
TEST_CASE("reference run: its input for the losses of 50 steps", "[.reference_input]") {
    write_input(twin_corpus(), twin_plan());
}

TEST_CASE("reference run: its input for the BLEU of real sentences", "[.reference_debian]") {
    const char *folder = std::getenv("TWIN_TRANSLATIONS"), *epochs = std::getenv("TWIN_EPOCHS");
    REQUIRE(folder != nullptr);
    REQUIRE(epochs != nullptr);
    CommonOptions common;
    common.data = folder;
    TranslationSettings settings;
    settings.pairs = "debian";
    settings.epochs = std::stoi(epochs);
    PairCorpus corpus = load_corpus(settings, common);
    corpus.test.resize(std::min<std::size_t>(corpus.test.size(), 1000));  // as many as the program
    write_input(corpus, plan_of(settings, common, {}));
}

}  // namespace ddp::test
