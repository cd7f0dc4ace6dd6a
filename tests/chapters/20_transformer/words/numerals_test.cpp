// Numbers in words: all of them as Python's num2words spells them (tests/golden/make_numerals.py),
// and the corpus that is made of them.
#include "20_transformer/words/numerals.hpp"

#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include "common/data/file.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

std::string line_of(int number) {
    return std::to_string(number) + '\t' + english_numeral(number) + '\t' +
           italian_numeral(number) + '\n';
}

}  // namespace

TEST_CASE("numbers in words are those of num2words, 0 to 999,999") {
    std::ifstream golden(WORDS_GOLDEN "/numerals.txt");
    std::string name, version, word;
    std::uint32_t expected = 0;
    golden >> name >> version >> word >> expected >> std::ws;
    REQUIRE(name == "num2words");
    int lines = 0;
    for (std::string line; std::getline(golden, line); lines++)
        REQUIRE(line_of(std::stoi(line)) == line + '\n');
    REQUIRE(lines == 60);
    std::uint32_t all = 0;
    std::string text;
    for (int number = 0; number < numerals; number++) {
        text += line_of(number);
        if (number % 1000 == 999) {
            all = checksum({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, all);
            text.clear();
        }
    }
    REQUIRE(all == expected);
}

TEST_CASE("Italian drops vowels and accents a final tre") {
    REQUIRE(italian_numeral(3) == "tre");
    REQUIRE(italian_numeral(21) == "ventuno");
    REQUIRE(italian_numeral(23) == "ventitré");
    REQUIRE(italian_numeral(28) == "ventotto");
    REQUIRE(italian_numeral(108) == "centotto");
    REQUIRE(italian_numeral(118) == "centodiciotto");
    REQUIRE(italian_numeral(180) == "centottanta");
    REQUIRE(italian_numeral(1000) == "mille");
    REQUIRE(italian_numeral(3000) == "tremila");
    REQUIRE(italian_numeral(808'323) == "ottocentottomilatrecentoventitré");
    REQUIRE(english_numeral(808'323) == "eight hundred eight thousand three hundred twenty-three");
    REQUIRE_THROWS_WITH(italian_numeral(-1),
                        "there are words for 0 to 999999 here, and not for -1");
    REQUIRE_THROWS_WITH(english_numeral(1'000'000),
                        "there are words for 0 to 999999 here, and not for 1000000");
}

TEST_CASE("no number is in the corpus twice, and train begins with those below 100") {
    const PairCorpus corpus = numeral_corpus(5000, 300, 700, 7);
    REQUIRE(corpus.train.size() == 5000);
    REQUIRE(corpus.valid.size() == 300);
    REQUIRE(corpus.test.size() == 700);
    std::set<std::string> sources, targets;
    for (const auto* split : {&corpus.train, &corpus.valid, &corpus.test})
        for (const SentencePair& pair : *split) {
            sources.insert(pair.source);
            targets.insert(pair.target);
        }
    REQUIRE((sources.size() == 6000 && targets.size() == 6000));
    for (int number = 0; number < 100; number++)
        REQUIRE(corpus.train[static_cast<std::size_t>(number)].target == italian_numeral(number));
    // Another seed draws other numbers; the same one draws the same.
    REQUIRE(numeral_corpus(5000, 300, 700, 7).test == corpus.test);
    REQUIRE(numeral_corpus(5000, 300, 700, 8).test != corpus.test);
}

TEST_CASE("held-out numbers have three to six digits, equally many of each") {
    std::set<std::string> three, six;
    for (int number = 100; number < 1000; number++)
        three.insert(english_numeral(number));
    const PairCorpus corpus = numeral_corpus(1, 1, 800, 3);
    const auto count = std::ranges::count_if(
        corpus.test, [&](const SentencePair& pair) { return three.contains(pair.source); });
    REQUIRE(count == Approx(200).margin(50));
    REQUIRE(corpus.train[0].source == "zero");
    REQUIRE_THROWS_WITH(numeral_corpus(100, 1, 0, 3), "each split needs a number at least");
    REQUIRE_THROWS_WITH(numeral_corpus(500'000, 400'000, 100'001, 3),
                        "there are no more than 999900 numbers of three to six digits");
}

}  // namespace ddp::test
