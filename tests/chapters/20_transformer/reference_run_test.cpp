// The training is PyTorch's: from the same weights, with the same sentences and without dropout, 50
// steps have the losses of a reference run written in PyTorch
// (tests/golden/transformer_reference.py), on one rank and on four.
#include <cmath>
#include <cstdlib>

#include "20_transformer/translation_training.hpp"
#include "20_transformer/words/translation_options.hpp"
#include "tests/chapters/20_transformer/twin.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Returns the path that REFERENCE_INPUT names.
std::filesystem::path input_path() {
    const char* path = std::getenv("REFERENCE_INPUT");
    REQUIRE(path != nullptr);
    return path;
}

}  // namespace

TEST_CASE("reference run: 50 steps have the losses of PyTorch, on one rank and on four") {
    const std::vector<double> expected = reference_losses();
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
    write_reference_input(input_path(), twin_corpus(), twin_plan());
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
    write_reference_input(input_path(), corpus, plan_of(settings, common, {}));
}

}  // namespace ddp::test
