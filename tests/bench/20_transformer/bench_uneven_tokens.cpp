// Measures how far the averaged gradient of a step is from the gradient of the whole batch, where
// the ranks have different numbers of tokens: with each rank's own divisor, and with one for all.
#include "05_ranks/world.hpp"
#include "20_transformer/words/translation_options.hpp"
#include "tests/bench/20_transformer/uneven_tokens.hpp"

namespace {

using namespace ddp;

// Takes the sentences and the model of the chapter's own run.
int run(World& world, const CommonOptions& common) {
    if (world.world_size() == 1)
        throw OptionError("One rank has all tokens of a step: take --ranks 2 or more.");
    const TranslationSettings settings;
    const TranslationPlan plan = plan_of(settings, common, {});
    PairCorpus corpus;
    world.prepare([&] { corpus = load_corpus(settings, common); });
    show_uneven_tokens(world, encode_corpus(world, std::move(corpus), plan), plan);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options parser("bench_uneven_tokens",
                   "The averaged gradient, where the ranks have different numbers of tokens.");
    parser.refuse({"--data", "--trace", "--link"},
                  "this bench compares one step's gradients of numbers in words");
    parser.example("--ranks 2", "two ranks");
    return run_ranks(argc, argv, parser, run);
}
