// The search for one batch of sources; a row is a beginning of a translation:
//
//     begin     the model reads the sources
//     next      the scores of every token after every row
//     extend    of each sentence: the best `beam` of its rows with every token after them; what
//               ends in end_token is a candidate, the others are the new rows
//     drop      the rows that cannot win any more, until none is left, or the sentence is as long
//               as it may be
//     best      of each sentence's candidates, those of a greedy search among them
//
// Each sentence has `beam` rows from the first step to the last, whether it needs them or not:
// sentence s has the rows from s * beam on. So the tensors of step t have the same sizes in every
// batch, and the device's memory is used again; the sentences of a batch are of similar
// length, and end together.
#include "20_transformer/translate.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>
#include <stdexcept>

#include "19_checkpoint_failover/state/checkpoints.hpp"
#include "19_checkpoint_failover/state/resume.hpp"
#include "20_transformer/decoder_only.hpp"
#include "20_transformer/translation_training.hpp"
#include "20_transformer/words/tokenizer_json.hpp"
#include "common/data/file.hpp"
#include "common/report/bench.hpp"
#include "common/report/options.hpp"

namespace ddp {
namespace {

constexpr std::size_t sentences_at_once = 32;

// Returns the score, which grows with the length: a long sentence is not worse for having more
// factors.
double score_of(double log_probability, std::size_t tokens) {
    return log_probability / std::pow((5.0 + static_cast<double>(tokens)) / 6.0, 0.6);
}

// A beginning of a translation, or a whole one.
struct Hypothesis {
    std::vector<int> tokens;
    double log_probability = 0;
    int row = 0;  // in the decoding, when the last token was chosen

    double score() const { return score_of(log_probability, tokens.size()); }
};

struct Search {
    std::vector<Hypothesis> growing, ended;
};

// Returns the log of the sum of exp over the scores of one row: what makes scores
// log-probabilities.
double log_sum_exp(const float* scores, std::size_t count) {
    const double largest = *std::max_element(scores, scores + count);
    double sum = 0;
    for (std::size_t i = 0; i < count; i++)
        sum += std::exp(scores[i] - largest);
    return largest + std::log(sum);
}

// Replaces the search's rows by the best of their continuations. The special tokens before
// end_token stand in no sentence.
void extend(Search& search, const std::vector<float>& scores, int vocabulary, int beam) {
    struct Continuation {
        double log_probability;
        std::size_t of;
        int token;
    };
    std::vector<Continuation> all;
    for (std::size_t i = 0; i < search.growing.size(); i++) {
        const float* row = scores.data() + static_cast<std::size_t>(search.growing[i].row) *
                                               static_cast<std::size_t>(vocabulary);
        const double total = log_sum_exp(row, static_cast<std::size_t>(vocabulary));
        for (int token = end_token; token < vocabulary; token++)
            all.push_back({search.growing[i].log_probability + row[token] - total, i, token});
    }
    // Twice the beam: even if all of the best half end here, the beam stays full.
    const std::size_t best = std::min(all.size(), static_cast<std::size_t>(2 * beam));
    std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(best),
                              std::ranges::greater(), &Continuation::log_probability);
    std::vector<Hypothesis> grown;
    for (std::size_t i = 0; i < best && static_cast<int>(grown.size()) < beam; i++) {
        Hypothesis next = search.growing[all[i].of];
        next.log_probability = all[i].log_probability;
        if (all[i].token == end_token) {
            // A sentence that only the worse half ends is not among the best `beam`.
            if (static_cast<int>(i) < beam)
                search.ended.push_back(std::move(next));
        } else {
            next.tokens.push_back(all[i].token);
            grown.push_back(std::move(next));
        }
    }
    search.growing = std::move(grown);
}

// Drops the rows that cannot win any more. No token makes a row likelier, and the score of a
// probability is best for the longest sentence: if even that is not above the best candidate's, no
// continuation will be. Greedy search has one row, and ends with it.
void drop_beaten(Search& search, const SearchOptions& options) {
    if (search.ended.empty())
        return;
    if (options.beam == 1) {
        search.growing.clear();
        return;
    }
    const double best = std::ranges::max(search.ended, {}, &Hypothesis::score).score();
    std::erase_if(search.growing, [&](const Hypothesis& row) {
        return score_of(row.log_probability, static_cast<std::size_t>(options.longest)) <= best;
    });
}

// Returns the best candidate; of a sentence that never ended, the best beginning.
std::vector<int> best_of(const Search& search) {
    const auto& candidates = search.ended.empty() ? search.growing : search.ended;
    return std::ranges::max_element(candidates, {}, &Hypothesis::score)->tokens;
}

// The rows of one step of the decoding.
struct Rows {
    std::vector<int> last, from_row;

    void add(const Hypothesis& hypothesis) {
        last.push_back(hypothesis.tokens.empty() ? begin_token : hypothesis.tokens.back());
        from_row.push_back(hypothesis.row);
    }
};

// Adds the `beam` rows of one sentence. Where it grows in fewer, or no more, some are there for the
// number's sake.
void add_rows(Search& search, std::size_t beam, Rows& rows) {
    const std::size_t first = rows.last.size();
    for (std::size_t k = 0; k < beam; k++)
        if (search.growing.empty())
            rows.add(search.ended.front());
        else
            rows.add(search.growing[std::min(k, search.growing.size() - 1)]);
    for (auto* hypotheses : {&search.growing, &search.ended})
        for (std::size_t k = 0; k < hypotheses->size(); k++)
            (*hypotheses)[k].row = static_cast<int>(first + std::min(k, beam - 1));
}

std::vector<Search> search_batch(TranslationModel& model,
                                 const std::vector<std::vector<int>>& sources,
                                 const SearchOptions& options) {
    std::vector<std::vector<int>> ended = sources;
    std::vector<Search> searches(sources.size());
    for (std::size_t i = 0; i < sources.size(); i++) {
        ended[i].push_back(end_token);
        searches[i].growing = {Hypothesis{{}, 0.0, static_cast<int>(i)}};
    }
    Device& device = model.parameters().front()->value.device();
    const NextScores next = model.begin_decoding(padded(device, ended));
    const int longest = std::min(options.longest, model.options().longest - 1);
    for (int length = 0; length < longest; length++) {
        if (std::ranges::all_of(searches, [](const Search& each) { return each.growing.empty(); }))
            break;
        Rows rows;
        for (Search& search : searches)
            add_rows(search, static_cast<std::size_t>(options.beam), rows);
        const std::vector<float> scores = next(rows.last, rows.from_row);
        for (Search& search : searches)
            if (!search.growing.empty()) {
                extend(search, scores, model.options().vocabulary, options.beam);
                drop_beaten(search, options);
            }
    }
    return searches;
}

// Returns the best translation of each source. A narrow beam can lose the row that greedy search
// follows, and with it a better sentence: so greedy's candidates count as well.
std::vector<std::vector<int>> best_of_batch(TranslationModel& model,
                                            const std::vector<std::vector<int>>& sources,
                                            const SearchOptions& options) {
    std::vector<Search> searches = search_batch(model, sources, options);
    if (options.beam > 1) {
        const std::vector<Search> greedy =
            search_batch(model, sources, {.beam = 1, .longest = options.longest});
        for (std::size_t i = 0; i < searches.size(); i++)
            for (auto part : {&Search::growing, &Search::ended})
                std::ranges::copy(greedy[i].*part, std::back_inserter(searches[i].*part));
    }
    std::vector<std::vector<int>> translations;
    for (const Search& search : searches)
        translations.push_back(best_of(search));
    return translations;
}

}  // namespace

std::vector<std::vector<int>> translate(TranslationModel& model,
                                        const std::vector<std::vector<int>>& sources,
                                        const SearchOptions& options) {
    if (options.beam < 1)
        throw std::invalid_argument("a search keeps a beam of at least 1, not " +
                                    std::to_string(options.beam));
    // From the shortest to the longest.
    std::vector<std::size_t> order(sources.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return sources[i].size(); });
    std::vector<std::vector<int>> translations(sources.size());
    for (std::size_t first = 0; first < order.size(); first += sentences_at_once) {
        const std::size_t end = std::min(first + sentences_at_once, order.size());
        std::vector<std::vector<int>> batch;
        for (std::size_t i = first; i < end; i++)
            batch.push_back(sources[order[i]]);
        std::vector<std::vector<int>> found = best_of_batch(model, batch, options);
        for (std::size_t i = first; i < end; i++)
            translations[order[i]] = std::move(found[i - first]);
    }
    return translations;
}

std::vector<std::string> translate_on_all_ranks(Rank& rank, TranslationModel& model,
                                                const Tokenizer& tokenizer,
                                                const std::vector<std::string>& sentences,
                                                const SearchOptions& options) {
    const std::size_t ranks = static_cast<std::size_t>(rank.world_size());
    std::vector<std::vector<int>> mine;
    for (std::size_t i = static_cast<std::size_t>(rank.rank()); i < sentences.size(); i += ranks)
        mine.push_back(tokenizer.encode(sentences[i]));
    // A translation holds no line break that counts: each is one line of the message.
    std::string lines;
    for (const auto& tokens : translate(model, mine, options)) {
        std::string line = tokenizer.decode(tokens);
        std::ranges::replace(line, '\n', ' ');
        lines += line + '\n';
    }
    const std::vector<std::string> all = rank.all_gather(lines);
    std::vector<std::size_t> at(ranks, 0);
    std::vector<std::string> translations;
    for (std::size_t i = 0; i < sentences.size(); i++) {
        const std::size_t from = i % ranks, end = all[from].find('\n', at[from]);
        translations.push_back(all[from].substr(at[from], end - at[from]));
        at[from] = end + 1;
    }
    return translations;
}

// ---- Held-out sentences

HeldOut HeldOut::first(std::size_t most) const {
    HeldOut some = *this;
    for (auto* column : {&some.sources, &some.expected, &some.translated})
        column->resize(std::min(most, column->size()));
    return some;
}

HeldOut translate_held_out(Rank& rank, TranslationModel& model, const Tokenizer& tokenizer,
                           std::span<const SentencePair> pairs, const SearchOptions& search) {
    const Stopwatch watch;
    HeldOut held_out;
    for (const SentencePair& pair : pairs) {
        held_out.sources.push_back(pair.source);
        held_out.expected.push_back(pair.target);
    }
    held_out.translated = translate_on_all_ranks(rank, model, tokenizer, held_out.sources, search);
    held_out.seconds = watch.seconds();
    return held_out;
}

// ---- From a checkpoint

namespace {

// Returns an entry that a training has written beside its parameters.
const std::string& text_in(const TrainingState& state, const std::string& key,
                           const std::string& name) {
    const auto found = state.configuration.find(key);
    if (found == state.configuration.end())
        refuse(name, "has no '" + key + "': it is no checkpoint of a translation.");
    return found->second;
}

int number_in(const TrainingState& state, const std::string& key, const std::string& name) {
    const std::string& text = text_in(state, key, name);
    int value = 0;
    const char* end = text.data() + text.size();
    if (const auto read = std::from_chars(text.data(), end, value);
        read.ec != std::errc() || read.ptr != end)
        refuse(name, "has the value '" + text + "' for '" + key + "', which is no number.");
    return value;
}

TransformerOptions model_in(const TrainingState& state, const std::string& name) {
    const auto number = [&](const std::string& key) { return number_in(state, key, name); };
    return {.vocabulary = number("vocabulary"),
            .width = number("width"),
            .heads = number("heads"),
            .layers = number("layers"),
            .feed_forward = number("feed-forward width"),
            .longest = number("longest sentence"),
            .dropout = 0,
            .norm_first = number("norm first") != 0,
            .tie_embeddings = number("tied embeddings") != 0,
            .decoder_only = text_in(state, model_entry, name) == decoder_only_model};
}

}  // namespace

Translator::Translator(const std::filesystem::path& folder) {
    DiskFolder disk(folder);
    std::vector<std::string> errors;
    const std::optional<Checkpoint> checkpoint = Checkpoints(disk, 1).newest(errors);
    if (!checkpoint && !errors.empty())
        throw DataError("no checkpoint in '" + folder.string() + "' is whole: " + errors.front());
    if (!checkpoint)
        throw OptionError("There is no checkpoint in '" + folder.string() +
                          "': train first (./book run 20), or name another --folder.");
    const std::string name = Checkpoints::file_name(checkpoint->step);
    const TrainingState state = to_state(checkpoint->file.header.metadata, name);
    const TransformerOptions options = model_in(state, name);
    tokenizer_ = tokenizer_from_json(text_in(state, tokenizer_entry, name));
    Random random(0);
    model_ = make_translation_model(device_, options, random, masks_);
    model_->set_training(false);
    std::vector<NamedTensor> parameters;
    for (const auto& parameter : model_->parameters())
        parameters.push_back({parameter->name, parameter->value});
    load_tensors(checkpoint->file, parameters, name);
    step_ = checkpoint->step;
}

std::string Translator::translate(const std::string& sentence, const SearchOptions& options) {
    return tokenizer_->decode(
        ddp::translate(*model_, {tokenizer_->encode(sentence)}, options).front());
}

}  // namespace ddp
