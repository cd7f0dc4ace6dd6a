#include "20_transformer/show/translation_run.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <numeric>

#include "11_data_parallel/replica.hpp"
#include "19_checkpoint_failover/state/checkpoints.hpp"
#include "20_transformer/words/numerals.hpp"
#include "20_transformer/words/package_descriptions.hpp"
#include "20_transformer/words/scores.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

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

void add_translation_options(Options& options, TranslationSettings& mine) {
    options.add_text(
        "--pairs", mine.pairs,
        "what to learn: numerals (built in), debian (package descriptions), or a FILE.tsv "
        "with a sentence, a tab and its translation in each line");
    options.add_text("--translate", mine.translate,
                     "translate this with the newest checkpoint, and end");
    options.add_text("--folder", mine.folder,
                     "for the checkpoints; the training continues from its newest");
    options.add_int("--sentences", mine.sentences, {0, 900'000}, "numbers to learn from");
    options.add_int("--epochs", mine.epochs, {0, 10'000}, "how often to see each sentence");
    options.add_int("--batch", mine.batch, {0, 100'000}, "sentences of all ranks together");
    options.add_int("--accumulate", mine.accumulate, {1, 1000}, "batches of a step (no_sync)");
    options.add_int("--width", mine.width, {0, 4096}, "numbers that stand for a token");
    options.add_int("--layers", mine.layers, {0, 100}, "of the encoder, and of the decoder");
    options.add_int("--heads", mine.heads, {1, 64}, "of each attention; they divide the width");
    options.add_choice("--tokenizer", mine.tokenizer, {"bytes", "words"},
                       "byte pairs, or whole words");
    options.add_int("--vocabulary", mine.vocabulary, {0, 100'000}, "the most tokens of bytes");
    options.add_double("--learning-rate", mine.learning_rate, {1e-9, 1e3}, "its peak");
    options.add_int("--warm-up", mine.warm_up, {0, 1'000'000}, "steps until the peak");
    options.add_double("--dropout", mine.dropout, {0, 0.99}, "the share that is dropped");
    options.add_double("--smoothing", mine.smoothing, {0, 0.99}, "of the labels");
    options.add_double("--clip", mine.clip, {1e-9, 1e9}, "the longest gradient");
    options.add_int("--every", mine.every, {1, 1'000'000}, "steps between two checkpoints");
    options.add_int("--beam", mine.beam, {1, 50}, "beginnings that the search keeps");
    options.add_flag("--post-norm", mine.post_norm, "normalise behind each sum, not before");
    options.add_flag("--untied", mine.untied, "source, target and output have own embeddings");
    options.add_flag("--decoder-only", mine.decoder_only,
                     "no encoder: one stack of twice the layers reads source and target");
    options.add_flag("--own-tokens", mine.own_tokens,
                     "divide each rank's loss by its own tokens: a mistake");
    options.add_flag("--bfloat16", mine.compresses, "send the gradients as 16-bit numbers");
    options.add_choice("--communicator", mine.communicator, {"native", "mpi", "nccl"},
                       "the library that carries the gradients");
    options.add_flag("--five-only", mine.five_only, "only the program with five mistakes");
    options.add_flag("--train-only", mine.train_only, "without it");
}

PairCorpus load_corpus(const TranslationSettings& mine, const CommonOptions& common) {
    if (mine.pairs == "debian")
        return load_package_descriptions(
            common.data.empty() ? usual_descriptions_folder() : common.data.string(),
            DescriptionParts::one_line);
    if (mine.pairs != "numerals")
        return load_pairs(mine.pairs, common.seed);
    const int train = mine.sentences > 0 ? mine.sentences
                      : common.quick     ? 1'000
                                         : numerals_suited.sentences;
    return numeral_corpus(train, common.quick ? 100 : 500, common.quick ? 100 : held_out_numbers,
                          common.seed);
}

std::filesystem::path usual_folder(const CommonOptions& common) {
    return common.csv.empty() ? std::filesystem::path() : common.csv.parent_path() / "transformer";
}

std::filesystem::path begin_folder(World& world, const TranslationSettings& mine,
                                   const CommonOptions& common) {
    const std::filesystem::path usual = usual_folder(common);
    if (!mine.folder.empty() || usual.empty())
        return mine.folder;
    world.run([&](Rank& rank) {
        if (rank.rank() != 0 || !std::filesystem::exists(usual))
            return;
        DiskFolder folder(usual);
        for (const int step : Checkpoints(folder, 1).steps())
            folder.remove(Checkpoints::file_name(step));
    });
    return usual;
}

TranslationPlan plan_of(const TranslationSettings& mine, const CommonOptions& common,
                        const std::filesystem::path& folder) {
    const Suited& suited = mine.pairs == "numerals" ? numerals_suited : sentences_suited;
    const auto chosen = [](int given, int otherwise) { return given > 0 ? given : otherwise; };
    const int width = chosen(mine.width, suited.width);
    if (width % mine.heads != 0)
        throw OptionError("--heads " + std::to_string(mine.heads) + " does not divide --width " +
                          std::to_string(width) + ": each head takes an equal part of it.");
    TranslationPlan plan;
    plan.model = {.width = width,
                  .heads = mine.heads,
                  .layers = chosen(mine.layers, suited.layers),
                  .feed_forward = 4 * width,
                  .longest = 64,
                  .dropout = mine.dropout.value_or(suited.dropout),
                  .norm_first = !mine.post_norm,
                  .tie_embeddings = !mine.untied,
                  .decoder_only = mine.decoder_only};
    plan.tokenizer = mine.tokenizer;
    plan.vocabulary = chosen(mine.vocabulary, suited.vocabulary);
    plan.epochs = chosen(mine.epochs, common.quick ? 1 : suited.epochs);
    plan.batch = chosen(mine.batch, suited.batch);
    plan.accumulate = mine.accumulate;
    plan.learning_rate = mine.learning_rate.value_or(suited.learning_rate);
    plan.warm_up = chosen(mine.warm_up, common.quick ? 10 : suited.warm_up);
    plan.smoothing = mine.smoothing.value_or(suited.smoothing);
    plan.clip = mine.clip;
    plan.divisor = mine.own_tokens ? Divisor::own_tokens : Divisor::all_tokens;
    plan.compresses = mine.compresses;
    plan.communicator = mine.communicator;
    plan.seed = common.seed;
    plan.checkpoints = {.folder = folder, .every = mine.every};
    return plan;
}

void show_translations(const HeldOut& held_out, const std::string& title, std::size_t most) {
    std::vector<std::size_t> order(held_out.sources.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto is_right = [&](std::size_t i) {
        return held_out.expected[i] == held_out.translated[i];
    };
    if (order.size() > most) {
        std::stable_partition(order.begin(), order.end(), std::not_fn(is_right));
        order.resize(most);
    }
    Table table(title, {"source", "translation", "it is"});
    for (const std::size_t i : order)
        table.row({held_out.sources[i], held_out.translated[i], is_right(i) ? "right" : "wrong"});
    std::cout << table << std::endl;
}

void show_result(const TranslationResult& result, const TranslationData& data,
                 const HeldOut& held_out, int world_size) {
    Table table("The training, and " +
                    format_count(static_cast<std::int64_t>(held_out.sources.size())) +
                    " sentences that it has not seen",
                {"what", "how much"});
    table.row({"steps", format_count(result.steps)});
    table.row({"vocabulary", format_count(data.tokenizer->size(), "token")});
    if (result.tokens > 0) {  // a call after the end of the training makes no step
        table.row({"seconds of training", format_fixed(result.seconds, 1)});
        table.row({"tokens a second",
                   format_count(static_cast<std::int64_t>(static_cast<double>(result.tokens) /
                                                          std::max(result.seconds, 1e-9)))});
        table.row({"validation loss for a token", format_fixed(result.validation_loss, 4)});
    }
    const ErrorCounts errors = held_out.counted<ErrorCounts>();
    table.row({"translated without a mistake",
               std::to_string(errors.right_sentences) + " (" +
                   format_percent(static_cast<double>(errors.right_sentences) /
                                  static_cast<double>(errors.sentences)) +
                   ")"});
    if (data.corpus.name != "numerals") {  // whose translations are single words
        table.row({"BLEU", format_fixed(held_out.counted<BleuCounts>().score(), 1)});
        table.row({"chrF", format_fixed(held_out.counted<ChrfCounts>().score(), 1)});
    }
    table.row({"wrong characters", format_percent(errors.character_error_rate())});
    table.row({"seconds of translating", format_fixed(held_out.seconds, 1)});
    std::cout << table << text_of_equal_replicas(world_size, result.hash) << "\n";
}

}  // namespace ddp
