// The training is PyTorch's: from the same weights, with the same sentences and without dropout, 50
// steps have the losses of a twin written in PyTorch (tests/golden/transformer_twin.py), on one
// rank and on four.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iomanip>

#include "18_transformer/translation_training.hpp"
#include "18_transformer/words/numerals.hpp"
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

// Writes everything that the twin needs as text: the plan, the weights, the batches.
void write_input(const std::string& path) {
    const TranslationPlan plan = twin_plan();
    World world(thread_options(1));
    const TranslationData data = encode_corpus(world, twin_corpus(), plan);
    Device device;
    DropoutMasks masks(plan.seed);
    Random random(plan.seed);
    TransformerOptions options = plan.model;
    options.vocabulary = data.tokenizer->size();
    const Transformer model(device, options, random, masks);
    std::ofstream file(path);
    file << std::setprecision(9) << "plan " << options.vocabulary << " " << options.width << " "
         << options.heads << " " << options.layers << " " << options.feed_forward << " "
         << plan.learning_rate << " " << plan.warm_up << " " << plan.smoothing << " " << plan.clip
         << "\n";
    for (const auto& parameter : model.parameters()) {
        file << "parameter " << parameter->name;
        for (const float value : parameter->value.to_host())
            file << " " << value;
        file << "\n";
    }
    const BatchPlan batches(data.train, plan.batch, plan.seed, 1);
    for (int i = 0; i < batches.batches(); i++) {
        const TokenBatch batch = batches.batch(i, 0, 1);
        file << "batch " << batch.sentences;
        for (const auto* tokens : {&batch.source, &batch.target_in, &batch.target_out})
            for (const int token : *tokens)
                file << " " << token;
        file << "\n";
    }
    REQUIRE(file.good());
}

}  // namespace

TEST_CASE("twin: 50 steps have the losses of PyTorch, on one rank and on four") {
    std::ifstream golden(TWIN_LOSSES);
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

// What transformer_twin.py reads; not a test.
TEST_CASE("twin: its input", "[.twin_input]") {
    const char* path = std::getenv("TWIN_INPUT");
    REQUIRE(path != nullptr);
    write_input(path);
}

}  // namespace ddp::test
