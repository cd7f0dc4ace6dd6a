// Does it carry a real model? A transformer learns to translate, on several ranks, with
// everything that the book has built.
#include <filesystem>
#include <iostream>

#include "05_ranks/world.hpp"
#include "19_checkpoint_failover/state/folders.hpp"
#include "20_transformer/show/five_report.hpp"
#include "20_transformer/support/training_view.hpp"
#include "20_transformer/words/scores.hpp"
#include "20_transformer/words/translation_options.hpp"

namespace {

using namespace ddp;

constexpr std::size_t max_held_out = 1000;  // sentences that are translated

int translate_one(const std::string& sentence, const TranslationSettings& options,
                  const CommonOptions& common) {
    if (sentence.find_first_not_of(" \t\r\n") == std::string::npos)
        throw OptionError("--translate needs a sentence, and '" + sentence + "' has no word.");
    const std::string folder =
        options.folder.empty() ? usual_folder(common).string() : options.folder;
    if (folder.empty())
        throw OptionError("--translate needs the --folder of a training's checkpoints.");
    Translator translator(folder);
    std::cout << translator.translate(sentence, {.beam = options.beam}) << "\n";
    return 0;
}

// Trains on every rank, and translates what was held out.
void train(Rank& rank, const TranslationData& data, const TranslationPlan& plan,
           const TranslationSettings& options, const CommonOptions& common,
           TranslationResult& result, HeldOut& held_out) {
    TrainingView view(rank, data.corpus.name, common.csv);
    const auto translate = [&](TranslationModel& model) {
        const std::span<const SentencePair> pairs = data.corpus.test;
        return translate_held_out(rank, model, *data.tokenizer,
                                  pairs.first(std::min(max_held_out, pairs.size())),
                                  {.beam = options.beam});
    };
    const TranslationHooks hooks{
        .on_start = [&](int steps) { view.start(steps); },
        .on_step = [&](const StepReport& report) { view.step(report); },
        .on_epoch =
            [&](int epoch, int step, double loss, TranslationModel& model) {
                if (options.pairs == "numerals")
                    return view.epoch(epoch, step, loss);
                const HeldOut now = translate(model);
                view.epoch(epoch, step, loss, now.counted<BleuCounts>().score());
                if (rank.rank() == 0)
                    show_translations(now.first(10), "After epoch " + std::to_string(epoch), 10);
            }};
    HeldOut all;
    const TranslationResult trained =
        train_translation(rank, data, plan, hooks, [&](TranslationModel& model) {
            all = translate(model);
            if (rank.rank() == 0)
                write_attention(common.csv, model, *data.tokenizer, all.sources);
        });
    view.end();
    if (rank.rank() != 0)
        return;
    result = trained;
    held_out = std::move(all);
}

int run(World& world, const TranslationSettings& options, const CommonOptions& common) {
    if (!options.train_only)
        show_five_mistakes(world, common);
    if (options.five_only)
        return 0;
    PairCorpus corpus;
    world.prepare([&] { corpus = load_corpus(options, common); });
    const CheckpointFolder folder(world, begin_folder(world, options, common).string());
    const TranslationPlan plan = plan_of(options, common, folder.path());
    const TranslationData data = encode_corpus(world, std::move(corpus), plan);
    TranslationResult result;
    HeldOut held_out;
    world.run([&](Rank& rank) { train(rank, data, plan, options, common, result, held_out); });
    if (!world.has_rank_0())
        return 0;
    show_translations(held_out, "Held-out sentences, the wrong ones first", 10);
    show_result(result, data, held_out, world.world_size());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] {
        TranslationSettings options;
        Options parser("transformer", "Does it carry a real model? A transformer that translates.");
        add_translation_options(parser, options);
        parser.refuse({"--trace", "--link"},
                      "this chapter trains on a whole run, and shows no step");
        parser.example("--folder run1", "a training that continues after Ctrl-C");
        parser.example("--translate \"two hundred one\"", "from the last checkpoint");
        const CommonOptions common = parser.parse(argc, argv);
        if (options.translate)
            return translate_one(*options.translate, options, common);
        if (const std::optional<int> status = launch_processes(common, argv))
            return *status;
        World world(common);
        return run(world, options, common);
    });
}
