#include "20_transformer/words/translation_options.hpp"

#include "19_checkpoint_failover/state/checkpoints.hpp"
#include "20_transformer/words/numerals.hpp"
#include "20_transformer/words/package_descriptions.hpp"

namespace ddp {
namespace {

// The sizes that suit the sentences: few words of which all sentences are made, or many.
struct Suited {
    int sentences, epochs, batch, width, layers, vocabulary, warm_up;
    double learning_rate, dropout, smoothing;
};
constexpr Suited numerals_suited{20'000, 2, 64, 64, 2, 400, 100, 3e-3, 0.0, 0.0};
constexpr Suited sentences_suited{0, 10, 64, 128, 3, 4000, 400, 2e-3, 0.1, 0.1};
constexpr int held_out_numbers = 1000;

}  // namespace

void add_translation_options(Options& parser, TranslationSettings& options) {
    parser.add_text(
        "--pairs", options.pairs,
        "what to learn: numerals (built in), debian (package descriptions), or a FILE.tsv "
        "with a sentence, a tab and its translation in each line");
    parser.add_text("--translate", options.translate,
                    "translate this with the newest checkpoint, and end");
    parser.add_text("--folder", options.folder,
                    "for the checkpoints; the training continues from its newest");
    parser.add_int("--sentences", options.sentences, {0, 900'000}, "numbers to learn from");
    parser.add_int("--epochs", options.epochs, {0, 10'000}, "how often to see each sentence");
    parser.add_int("--batch", options.batch, {0, 100'000}, "sentences of all ranks together");
    parser.add_int("--accumulate", options.accumulate, {1, 1000}, "batches of a step (no_sync)");
    parser.add_int("--width", options.width, {0, 4096}, "numbers that stand for a token");
    parser.add_int("--layers", options.layers, {0, 100}, "of the encoder, and of the decoder");
    parser.add_int("--heads", options.heads, {1, 64}, "of each attention; they divide the width");
    parser.add_choice("--tokenizer", options.tokenizer, {"bytes", "words"},
                      "byte pairs, or whole words");
    parser.add_int("--vocabulary", options.vocabulary, {0, 100'000}, "the most tokens of bytes");
    parser.add_double("--learning-rate", options.learning_rate, {1e-9, 1e3}, "its peak");
    parser.add_int("--warm-up", options.warm_up, {0, 1'000'000}, "steps until the peak");
    parser.add_double("--dropout", options.dropout, {0, 0.99}, "the share that is dropped");
    parser.add_double("--smoothing", options.smoothing, {0, 0.99}, "of the labels");
    parser.add_double("--clip", options.clip, {1e-9, 1e9}, "the longest gradient");
    parser.add_int("--every", options.every, {1, 1'000'000}, "steps between two checkpoints");
    parser.add_int("--beam", options.beam, {1, 50}, "beginnings that the search keeps");
    parser.add_flag("--post-norm", options.post_norm, "normalise after each sum, not before");
    parser.add_flag("--untied", options.untied, "source, target and output have own embeddings");
    parser.add_flag("--decoder-only", options.decoder_only,
                    "no encoder: one stack of twice the layers reads source and target");
    parser.add_flag("--own-tokens", options.own_tokens,
                    "divide each rank's loss by its own tokens: a mistake");
    parser.add_flag("--bfloat16", options.compresses, "send the gradients as 16-bit numbers");
    parser.add_choice("--communicator", options.communicator, {"native", "mpi", "nccl"},
                      "the library that carries the gradients");
    parser.add_flag("--five-only", options.five_only, "only the program with five mistakes");
    parser.add_flag("--train-only", options.train_only, "without it");
}

PairCorpus load_corpus(const TranslationSettings& options, const CommonOptions& common) {
    if (options.pairs == "debian")
        return load_package_descriptions(
            common.data.empty() ? usual_descriptions_folder() : common.data.string(),
            DescriptionParts::one_line);
    if (options.pairs != "numerals")
        return load_pairs(options.pairs, common.seed);
    const int train = options.sentences > 0 ? options.sentences
                      : common.quick        ? 1'000
                                            : numerals_suited.sentences;
    return numeral_corpus(train, common.quick ? 100 : 500, common.quick ? 100 : held_out_numbers,
                          common.seed);
}

std::filesystem::path usual_folder(const CommonOptions& common) {
    return common.csv.empty() ? std::filesystem::path() : common.csv.parent_path() / "transformer";
}

std::filesystem::path begin_folder(World& world, const TranslationSettings& options,
                                   const CommonOptions& common) {
    const std::filesystem::path usual = usual_folder(common);
    if (!options.folder.empty() || usual.empty())
        return options.folder;
    world.run([&](Rank& rank) {
        if (rank.rank() != 0 || !std::filesystem::exists(usual))
            return;
        DiskFolder folder(usual);
        for (const int step : Checkpoints(folder, 1).steps())
            folder.remove(Checkpoints::file_name(step));
    });
    return usual;
}

TranslationPlan plan_of(const TranslationSettings& options, const CommonOptions& common,
                        const std::filesystem::path& folder) {
    const Suited& suited = options.pairs == "numerals" ? numerals_suited : sentences_suited;
    const auto chosen = [](int given, int otherwise) { return given > 0 ? given : otherwise; };
    const int width = chosen(options.width, suited.width);
    if (width % options.heads != 0)
        throw OptionError("--heads " + std::to_string(options.heads) + " does not divide --width " +
                          std::to_string(width) + ": each head takes an equal part of it.");
    TranslationPlan plan;
    plan.model = {.width = width,
                  .heads = options.heads,
                  .layers = chosen(options.layers, suited.layers),
                  .feed_forward = 4 * width,
                  .longest = 64,
                  .dropout = options.dropout.value_or(suited.dropout),
                  .norm_first = !options.post_norm,
                  .tie_embeddings = !options.untied,
                  .decoder_only = options.decoder_only};
    plan.tokenizer = options.tokenizer;
    plan.vocabulary = chosen(options.vocabulary, suited.vocabulary);
    plan.epochs = chosen(options.epochs, common.quick ? 1 : suited.epochs);
    plan.batch = chosen(options.batch, suited.batch);
    plan.accumulate = options.accumulate;
    plan.learning_rate = options.learning_rate.value_or(suited.learning_rate);
    plan.warm_up = chosen(options.warm_up, common.quick ? 10 : suited.warm_up);
    plan.smoothing = options.smoothing.value_or(suited.smoothing);
    plan.clip = options.clip;
    plan.divisor = options.own_tokens ? Divisor::own_tokens : Divisor::all_tokens;
    plan.compresses = options.compresses;
    plan.communicator = options.communicator;
    plan.seed = common.seed;
    plan.checkpoints = {.folder = folder, .every = options.every};
    return plan;
}

}  // namespace ddp
