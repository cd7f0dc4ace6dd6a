// BLEU and chrF equal to sacrebleu's, edit distances equal to rapidfuzz's
// (tests/golden/make_scores.py), and counts that add up over ranks.
#include "20_transformer/words/scores.hpp"

#include <fstream>
#include <sstream>

#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

struct ScoredSet {
    std::string name;
    double bleu, chrf;
    std::int64_t character_errors, word_errors;
    std::vector<std::pair<std::string, std::string>> pairs;
};

std::vector<ScoredSet> golden_sets() {
    std::ifstream file(WORDS_GOLDEN "/scores.txt");
    std::string line, word;
    REQUIRE(std::getline(file, line));
    REQUIRE(line.starts_with("sacrebleu "));
    std::vector<ScoredSet> sets;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        ScoredSet set;
        std::size_t pairs = 0;
        words >> word >> set.name >> pairs >> set.bleu >> set.chrf >> set.character_errors >>
            set.word_errors;
        REQUIRE(words);
        for (; pairs > 0; pairs--) {
            REQUIRE(std::getline(file, line));
            const std::size_t tab = line.find('\t');
            set.pairs.emplace_back(line.substr(0, tab), line.substr(tab + 1));
        }
        sets.push_back(set);
    }
    return sets;
}

}  // namespace

TEST_CASE("scores are those of sacrebleu and rapidfuzz, for one rank and for three") {
    const std::vector<ScoredSet> sets = golden_sets();
    REQUIRE(sets.size() > 80);
    for (const ScoredSet& set : sets)
        for (const std::size_t ranks : {1, 3}) {
            BleuCounts bleu;
            ChrfCounts chrf;
            ErrorCounts errors;
            for (std::size_t rank = 0; rank < ranks; rank++) {
                BleuCounts own_bleu;
                ChrfCounts own_chrf;
                ErrorCounts own_errors;
                for (std::size_t i = rank; i < set.pairs.size(); i += ranks) {
                    const auto& [translation, reference] = set.pairs[i];
                    own_bleu.add(translation, reference);
                    own_chrf.add(translation, reference);
                    own_errors.add(translation, reference);
                }
                bleu.add(own_bleu);
                chrf.add(own_chrf);
                errors.add(own_errors);
            }
            CAPTURE(set.name, ranks);
            REQUIRE(bleu.score() == Approx(set.bleu).epsilon(1e-8).margin(1e-12));
            REQUIRE(chrf.score() == Approx(set.chrf).epsilon(1e-8).margin(1e-12));
            REQUIRE(errors.character_errors == set.character_errors);
            REQUIRE(errors.word_errors == set.word_errors);
            REQUIRE(errors.sentences == std::ssize(set.pairs));
        }
}

TEST_CASE("BLEU's words: punctuation stands alone, but not in numbers and within words") {
    REQUIRE(bleu_words("It's 3.14, or 1,000 e-mails (5-6).") ==
            std::vector<std::u32string>{U"It's", U"3.14", U",", U"or", U"1,000", U"e-mails", U"(",
                                        U"5", U"-", U"6", U")", U"."});
    REQUIRE(bleu_words(" ").empty());
}

TEST_CASE("error rates: by hand") {
    ErrorCounts errors;
    errors.add("il gato sul tavolo", "il gatto è sul tavolo");  // t, and "è ": 3 of 21; 2 of 5
    REQUIRE(errors.character_error_rate() == Approx(3 / 21.0));
    REQUIRE(errors.word_error_rate() == Approx(2 / 5.0));
    errors.add("ventuno", "ventuno");
    REQUIRE((errors.sentences == 2 && errors.right_sentences == 1));
    REQUIRE(ErrorCounts().character_error_rate() == 0);
}

}  // namespace ddp::test
