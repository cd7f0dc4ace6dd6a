#pragma once
// Scores say how good translations are, in numbers that can be compared with those of others. All
// are made of counts over a whole set of sentences, and counts add up: each rank counts its share,
// the sums are all-reduced, and the score is that of the whole set. (A mean of scores would be
// another number.)
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ddp {

// BLEU, the share of a translation's one to four words in a row that the reference has, too, from 0
// to 100. (Papineni et al., 2002; the words, and the smoothing of a share that is 0, as sacrebleu's
// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp": Post, 2018.)
struct BleuCounts {
    std::array<std::int64_t, 4> matches{};  // runs of 1, 2, 3, 4 words that the reference has
    std::array<std::int64_t, 4> runs{};     // all runs of the translations
    std::int64_t words = 0, reference_words = 0;

    // Counts one translation, in UTF-8.
    void add(const std::string& translation, const std::string& reference);
    void add(const BleuCounts& others);
    double score() const;
};

// chrF, the same with runs of one to six characters, without spaces: right stems count, though an
// ending is wrong. From 0 to 100. (Popović, 2015; as sacrebleu's
// "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no".)
struct ChrfCounts {
    std::array<std::int64_t, 6> matches{};
    std::array<std::int64_t, 6> runs{};            // of the translations
    std::array<std::int64_t, 6> reference_runs{};  // of the references

    void add(const std::string& translation, const std::string& reference);
    void add(const ChrfCounts& others);
    double score() const;
};

// Error rates: the fewest characters (or words) that must be replaced, inserted or deleted to make
// the reference of the translation, divided by the length of the reference. 0 is right; above 1 is
// possible. (Levenshtein, 1966.)
struct ErrorCounts {
    std::int64_t character_errors = 0, characters = 0;  // of the references, with spaces
    std::int64_t word_errors = 0, words = 0;            // between white space
    std::int64_t sentences = 0, right_sentences = 0;    // right: without an error

    void add(const std::string& translation, const std::string& reference);
    void add(const ErrorCounts& others);
    double character_error_rate() const;
    double word_error_rate() const;
};

// Returns the words that BLEU counts: punctuation is apart, except in numbers ("3.14", "1,000") and
// within a word ("it's", "e-mail"). In sacrebleu it is the tokenizer 13a.
std::vector<std::u32string> bleu_words(const std::string& sentence);

}  // namespace ddp
