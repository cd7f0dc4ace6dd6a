#pragma once
// Sentences and their translations: in a file with a pair in each line, and in three splits.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ddp {

struct SentencePair {
    std::string source, target;  // UTF-8, without spaces at the ends
    std::string group;           // pairs of the same group stay in one split; empty: the source is

    bool operator==(const SentencePair&) const = default;
};

struct PairCorpus {
    std::string name;
    std::vector<SentencePair> train, valid, test;
};

// The most bytes that a sentence may have. A longer one is a sign of a wrong file.
inline constexpr std::size_t longest_sentence = 4096;

// Reads tab-separated values: in each line a sentence, a tab and its translation. Throws DataError,
// which calls the file `name` and names the line, if a line has no tab or more than one, an empty
// side, a side above longest_sentence, a control character, or bytes that are not UTF-8; and if
// there is no line at all.
std::vector<SentencePair> parse_pairs(std::string_view text, const std::string& name);

// Deals the pairs to three splits, whole groups at a time, in an order that depends on the seed
// alone: a twentieth to valid and to test, but at most 1,000 each, and the rest to train. A
// sentence of train is taken out of the other two. Throws DataError if one of the three remains
// empty.
PairCorpus split_pairs(std::string name, std::vector<SentencePair> pairs, std::uint64_t seed);

// Reads a file and deals its pairs. Throws DataError as the two above and read_file do.
PairCorpus load_pairs(const std::string& tsv_file, std::uint64_t seed);

}  // namespace ddp
