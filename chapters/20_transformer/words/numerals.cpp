//     808,323    thousands 808                       rest 323
//     English    eight hundred eight thousand        three hundred twenty-three
//     Italian    ottocent(o)otto -> ottocentotto mila   trecento vent(i)tre -> trecentoventitré
//
// Both languages say the thousands, then the rest. Italian writes one word, and where two vowels
// meet the first may go: venti + uno is ventuno, cento + otto is centotto.
#include "20_transformer/words/numerals.hpp"

#include <array>
#include <stdexcept>
#include <vector>

#include "common/data/random.hpp"

namespace ddp {
namespace {

using NumberWords = std::array<const char*, 20>;
using TensWords = std::array<const char*, 10>;

constexpr NumberWords english_words{"zero",    "one",     "two",       "three",    "four",
                                    "five",    "six",     "seven",     "eight",    "nine",
                                    "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr TensWords english_tens{"",      "",      "twenty",  "thirty", "forty",
                                 "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr NumberWords italian_words{"zero",     "uno",    "due",         "tre",      "quattro",
                                    "cinque",   "sei",    "sette",       "otto",     "nove",
                                    "dieci",    "undici", "dodici",      "tredici",  "quattordici",
                                    "quindici", "sedici", "diciassette", "diciotto", "diciannove"};
constexpr TensWords italian_tens{"",          "",         "venti",    "trenta",  "quaranta",
                                 "cinquanta", "sessanta", "settanta", "ottanta", "novanta"};
constexpr int small_numbers = 100;  // all others are made of their words

void require_words_for(int number) {
    if (number < 0 || number >= numerals)
        throw std::out_of_range("there are words for 0 to 999999 here, and not for " +
                                std::to_string(number));
}

// Appends `word` to `text`, with a space between them if there is something before it.
void append_word(std::string& text, const std::string& word) {
    text += (text.empty() ? "" : " ") + word;
}

// Returns the English words for 1 .. 999.
std::string english_hundreds(int number) {
    std::string text;
    if (number >= 100)
        text = english_words.at(static_cast<std::size_t>(number / 100)) + std::string(" hundred");
    const auto rest = static_cast<std::size_t>(number % 100);
    if (rest >= 20)
        append_word(text, english_tens.at(rest / 10) +
                              (rest % 10 ? std::string("-") + english_words.at(rest % 10) : ""));
    else if (rest > 0)
        append_word(text, english_words.at(rest));
    return text;
}

// Returns the Italian word for 1 .. 999, without the accent.
std::string italian_hundreds(int number) {
    std::string text;
    const auto hundreds = static_cast<std::size_t>(number / 100);
    const auto rest = static_cast<std::size_t>(number % 100);
    const std::size_t tens = rest / 10, units = rest % 10;
    if (hundreds > 0)
        text = (hundreds > 1 ? italian_words.at(hundreds) : std::string()) + "cento";
    // cento loses its o before otto and ottanta.
    if (hundreds > 0 && (rest == 8 || tens == 8))
        text.pop_back();
    if (rest < 20)
        return rest > 0 ? text + italian_words.at(rest) : text;
    text += italian_tens.at(tens);
    // venti, trenta ... lose their last vowel before uno and otto.
    if (units == 1 || units == 8)
        text.pop_back();
    return units > 0 ? text + italian_words.at(units) : text;
}

// Draws numbers of three to six digits that have not been drawn before.
class NumberSource {
  public:
    explicit NumberSource(std::uint64_t seed) : random_(seed), drawn_(numerals) {}

    SentencePair next() {
        for (;;) {
            std::size_t low = 100;  // the first number with as many digits
            for (std::size_t more = random_.below(4); more > 0; more--)
                low *= 10;
            const std::size_t number = low + random_.below(9 * low);
            if (!drawn_[number]) {
                drawn_[number] = true;
                return pair(static_cast<int>(number));
            }
        }
    }

    static SentencePair pair(int number) {
        return {english_numeral(number), italian_numeral(number), ""};
    }

  private:
    Random random_;
    std::vector<bool> drawn_;
};

}  // namespace

std::string english_numeral(int number) {
    require_words_for(number);
    if (number == 0)
        return english_words[0];
    std::string text;
    if (number >= 1000)
        text = english_hundreds(number / 1000) + " thousand";
    if (number % 1000 > 0)
        append_word(text, english_hundreds(number % 1000));
    return text;
}

std::string italian_numeral(int number) {
    require_words_for(number);
    if (number == 0)
        return italian_words[0];
    std::string text;
    if (number >= 2000)
        text = italian_hundreds(number / 1000) + "mila";
    else if (number >= 1000)
        text = "mille";
    text += italian_hundreds(number % 1000);
    // The accent falls on the end of a compound with tre; the word tre itself needs none.
    if (number > 3 && text.ends_with("tre"))
        text.replace(text.size() - 1, 1, "é");
    return text;
}

PairCorpus numeral_corpus(int train, int valid, int test, std::uint64_t seed) {
    if (train < 1 || valid < 1 || test < 1)
        throw std::invalid_argument("each split needs a number at least");
    const int small = std::min(train, small_numbers);
    if (std::int64_t{train} - small + valid + test > numerals - small_numbers)
        throw std::invalid_argument("there are no more than 999900 numbers of three to six digits");
    PairCorpus corpus{"numerals", {}, {}, {}};
    NumberSource source(seed);
    for (int i = 0; i < test; i++)
        corpus.test.push_back(source.next());
    for (int i = 0; i < valid; i++)
        corpus.valid.push_back(source.next());
    for (int i = 0; i < train; i++)
        corpus.train.push_back(i < small ? NumberSource::pair(i) : source.next());
    return corpus;
}

}  // namespace ddp
