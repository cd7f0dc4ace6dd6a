#pragma once
// Real sentences: the descriptions of Debian's packages, in English and as people have translated
// them to Italian. `./book data translations` fetches both files:
//
//     Package: 0ad                                      the same package
//     Description-md5: d943033bedada21853d2ae54a2578a7b the same English text: the two belong
//                                                       together
//     Description-it: gioco di strategia in tempo reale di guerra antica
//      0 A.D. è un gioco ...                            paragraphs: lines behind one space,
//      .                                                a point between two of them,
//       * un elenco                                     and lists, behind more, which are left out
#include <string>
#include <string_view>
#include <vector>

#include "20_transformer/words/pairs.hpp"

namespace ddp {

// The pairs of a description: its first line alone, which sums it up in some seven words; or that
// and its paragraphs, sentence by sentence.
enum class DescriptionParts { one_line, all };

// Returns the folder that `./book data translations` fills: build/translations, where the program
// is build/cpu/bin/transformer.
std::string usual_descriptions_folder();

// Reads Translation-en and Translation-it from `folder` and deals the pairs to splits, each package
// to one of them. Throws DataError, with one sentence, if a file is missing or damaged.
PairCorpus load_package_descriptions(const std::string& folder,
                                     DescriptionParts parts = DescriptionParts::all);

// Returns the pairs of two such files in memory, grouped by package: one-line descriptions in the
// order of `italian`, then sentences. Where both languages have as many paragraphs, the first
// belongs to the first; where a paragraph has as many sentences in both, the same is true of these,
// and otherwise the paragraph is the pair. Left out are pairs that come twice, that are not
// translated, or that parse_pairs would refuse. Throws DataError, with one sentence that names the
// file and the line, if a text is damaged.
std::vector<SentencePair> join_descriptions(std::string_view english, std::string_view italian,
                                            DescriptionParts parts);

}  // namespace ddp
