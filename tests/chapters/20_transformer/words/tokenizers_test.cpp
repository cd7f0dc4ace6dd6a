// Both tokenizers: what they learn, what comes back of a sentence, and files that are not theirs.
#include <algorithm>
#include <iterator>
#include <map>
#include <random>

#include "20_transformer/words/byte_pairs.hpp"
#include "20_transformer/words/numerals.hpp"
#include "20_transformer/words/tokenizer_json.hpp"
#include "20_transformer/words/word_tokenizer.hpp"
#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Spelled = std::vector<std::string>;

Spelled spelled(const BytePairs& pairs, const std::string& sentence) {
    Spelled pieces;
    for (const int token : pairs.encode(sentence))
        pieces.push_back(pairs.spelling(token));
    return pieces;
}

std::vector<std::string> numeral_sentences(int count) {
    std::vector<std::string> sentences;
    for (const SentencePair& pair : numeral_corpus(count, 1, 1, 2).train) {
        sentences.push_back(pair.source);
        sentences.push_back(pair.target);
    }
    return sentences;
}

// Cuts a numeral into words with their space, a hyphen for itself, and these into bytes.
std::vector<Spelled> words_of_numeral(const std::string& sentence) {
    std::vector<Spelled> words(1, Spelled{" "});
    for (const char letter : sentence) {
        if (letter == ' ' || letter == '-' || words.back().back() == "-")
            words.emplace_back();
        words.back().emplace_back(1, letter);
    }
    return words;
}

// Learning as the definition says it: all pairs are counted anew for each merge.
struct SlowlyLearnt {
    std::vector<std::vector<int>> words;  // their tokens in the end
    std::vector<Merge> merges;

    SlowlyLearnt(const std::vector<Spelled>& spelled_words, int count) {
        for (const Spelled& word : spelled_words) {
            words.emplace_back();
            for (const std::string& byte : word)
                words.back().push_back(first_free_token + static_cast<std::uint8_t>(byte[0]));
        }
        while (std::ssize(merges) < count && learn_one())
            continue;
    }

  private:
    bool learn_one() {
        std::map<Merge, int> counts;
        for (const auto& word : words)
            for (std::size_t i = 0; i + 1 < word.size(); i++)
                counts[{word[i], word[i + 1]}]++;
        const auto best = std::ranges::max_element(
            counts, {}, [](const auto& count) { return count.second; });  // the first of several
        if (best == counts.end() || best->second < 2)
            return false;
        for (auto& word : words)
            for (std::size_t i = 0; i + 1 < word.size(); i++)
                if (Merge(word[i], word[i + 1]) == best->first) {
                    word[i] = BytePairs::bytes_only + static_cast<int>(merges.size());
                    word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
                }
        merges.push_back(best->first);
        return true;
    }
};

std::string with_merges(const std::string& merges) {
    return R"({"tokenizer": "byte pairs", "merges": [)" + merges + "]}";
}

const std::string advice = ": take the one that was saved with the model.";

}  // namespace

TEST_CASE("byte pairs: the picture's words and merges") {
    const BytePairs pairs =
        BytePairs::learn({"ventuno", "ventidue", "ventisei", "trentuno", "trentasei"}, 5000);
    Spelled merges;
    for (const auto& [left, right] : pairs.merges())
        merges.push_back(pairs.spelling(left) + "+" + pairs.spelling(right));
    REQUIRE(merges == Spelled{"e+n", "en+t", " +v", " v+ent", " +t", "e+i", "n+o", "r+ent", "s+ei",
                              "u+no", " vent+i", " t+rent"});
    REQUIRE(pairs.size() == BytePairs::bytes_only + 12);
    REQUIRE(spelled(pairs, "ventidue") == Spelled{" venti", "d", "u", "e"});
    REQUIRE(spelled(pairs, "trentuno") == Spelled{" trent", "uno"});
    REQUIRE(spelled(pairs, "trentadue") == Spelled{" trent", "a", "d", "u", "e"});
}

TEST_CASE("byte pairs: the fast way learns what the definition says, and encodes as it learnt") {
    const std::vector<std::string> sentences = numeral_sentences(150);
    std::vector<Spelled> words;
    for (const std::string& sentence : sentences)
        for (const Spelled& word : words_of_numeral(sentence))
            words.push_back(word);
    const SlowlyLearnt slow(words, 200);
    REQUIRE(slow.merges.size() == 200);
    const BytePairs pairs = BytePairs::learn(sentences, BytePairs::bytes_only + 200);
    REQUIRE(pairs.merges() == slow.merges);
    std::vector<int> all, slow_all;
    for (const std::string& sentence : sentences)
        std::ranges::copy(pairs.encode(sentence), std::back_inserter(all));
    for (const std::vector<int>& word : slow.words)
        std::ranges::copy(word, std::back_inserter(slow_all));
    REQUIRE(all == slow_all);
    // The order of the sentences does not matter.
    REQUIRE(BytePairs::learn({sentences.rbegin(), sentences.rend()}, BytePairs::bytes_only + 200)
                .merges() == slow.merges);
}

TEST_CASE("byte pairs: the same where pairs overlap") {
    std::mt19937 random(5);
    for (int round = 0; round < 30; round++) {
        std::vector<std::string> sentences;
        std::vector<Spelled> words;
        for (int i = 0; i < 20; i++) {
            sentences.emplace_back(1 + random() % 30, 'a');
            for (char& letter : sentences.back())
                letter = random() % 4 == 0 ? 'b' : 'a';
            words.push_back(words_of_numeral(sentences.back())[0]);
        }
        const SlowlyLearnt slow(words, 1000);
        const BytePairs pairs = BytePairs::learn(sentences, BytePairs::bytes_only + 1000);
        REQUIRE(pairs.merges() == slow.merges);
        for (std::size_t i = 0; i < sentences.size(); i++)
            REQUIRE(pairs.encode(sentences[i]) == slow.words[i]);
    }
}

TEST_CASE("byte pairs: overlapping pairs are merged from the left") {
    const BytePairs pairs = BytePairs::learn({"aaaa", "aaaa", "aaa"}, 5000);
    REQUIRE(pairs.spelling(BytePairs::bytes_only) == "aa");
    REQUIRE(spelled(pairs, "baaaaa") == Spelled{" ", "b", "aa", "aa", "a"});
}

TEST_CASE("byte pairs: every sentence comes back, of whatever bytes") {
    const std::vector<std::string> sentences = numeral_sentences(500);
    const BytePairs pairs = BytePairs::learn(sentences, 600);
    for (const std::string& sentence : sentences)
        REQUIRE(pairs.decode(pairs.encode(sentence)) == sentence);
    std::mt19937 random(3);
    for (int i = 0; i < 2000; i++) {
        std::string sentence(random() % 20, ' ');
        for (char& letter : sentence)
            letter = " \tz9-.\xC3\xA9\xFFvento"[random() % 14];
        REQUIRE(pairs.decode(pairs.encode(sentence)) == sentence);
    }
    REQUIRE(pairs.encode("").empty());
    REQUIRE(pairs.decode({begin_token, first_free_token + 'a', pad_token, unknown_token,
                          end_token}) == "a[UNK]");
    REQUIRE_THROWS_WITH(pairs.decode({600}), "there is no token 600 in a vocabulary of 600");
    REQUIRE_THROWS_WITH(pairs.decode({-1}), "there is no token -1 in a vocabulary of 600");
    REQUIRE_THROWS_WITH(BytePairs::learn(sentences, 259),
                        "a vocabulary has from 260 to 1000000 tokens, and not 259");
}

TEST_CASE("byte pairs: words have a space before them, and no merge crosses their ends") {
    const std::string sentence = "l'anno 2002,  anno2002";
    const BytePairs pairs =
        BytePairs::learn(std::vector<std::string>(3, sentence), BytePairs::bytes_only + 100);
    REQUIRE(spelled(pairs, sentence) ==
            Spelled{" l", "'", "anno", " 2002", ",", " ", " anno", "2002"});
}

TEST_CASE("tokenizers are the same again after a file") {
    const std::vector<std::string> sentences = numeral_sentences(200);
    const BytePairs pairs = BytePairs::learn(sentences, 500);
    const WordTokenizer words = WordTokenizer::learn(sentences, 500);
    for (const Tokenizer* made :
         {static_cast<const Tokenizer*>(&pairs), static_cast<const Tokenizer*>(&words)}) {
        const auto again = tokenizer_from_json(made->to_json());
        REQUIRE(again->size() == made->size());
        for (const std::string& sentence : sentences)
            REQUIRE(again->encode(sentence) == made->encode(sentence));
    }
}

TEST_CASE("tokenizers: a file that is not theirs is refused in one sentence") {
    const auto refusal = [](const std::string& json) {
        return data_error([&] { tokenizer_from_json(json); });
    };
    const std::string the_file = "the file of a tokenizer ";
    REQUIRE(refusal("{") == the_file + "is not JSON" + advice);
    REQUIRE(refusal("[]") == the_file + "does not say which tokenizer it is" + advice);
    REQUIRE(refusal(R"({"tokenizer": "pieces"})") ==
            the_file + "is of the kind 'pieces', which is not known here" + advice);
    REQUIRE(refusal(R"({"tokenizer": "byte pairs"})") == the_file + "has no merges" + advice);
    REQUIRE(refusal(std::string(100'000, '[')) == the_file + "is nested too deeply" + advice);
    REQUIRE(refusal(with_merges("[101, 102]")).empty());
    const std::string numbers = "has a merge that is not two numbers of tokens";
    for (const char* bad :
         {"5", "[101]", "[101, 102, 103]", "[101, -1]", "[101, 1.5]", "[1, 4294967396]"})
        REQUIRE(refusal(with_merges(bad)) == the_file + numbers + advice);
    REQUIRE(refusal(with_merges("[101, 260]")) ==
            the_file + "joins tokens that are not there yet" + advice);
    REQUIRE(refusal(with_merges("[101, 2]")) ==
            the_file + "joins tokens that are not there yet" + advice);
    REQUIRE(refusal(with_merges("[101, 102], [101, 102]")) ==
            the_file + "joins the same tokens twice" + advice);
    std::string doubling = "[101, 101]";
    for (int token = 260; token < 320; token++)
        doubling += ", [" + std::to_string(token) + ", " + std::to_string(token) + "]";
    REQUIRE(refusal(with_merges(doubling)) ==
            the_file + "has a token of more than 256 bytes" + advice);
    REQUIRE(refusal(R"({"tokenizer": "words", "words": ["a", 1]})") ==
            the_file + "has a word that is not a text" + advice);
    REQUIRE(refusal(R"({"tokenizer": "words", "words": ["a", "a"]})") ==
            the_file + "has a word twice" + advice);
    REQUIRE(data_error([] { BytePairs::from_json(R"({"tokenizer": "words", "words": []})"); }) ==
            the_file + "belongs to another tokenizer than 'byte pairs'" + advice);
}

TEST_CASE("words: those that come twice, and what is lost") {
    const WordTokenizer words =
        WordTokenizer::learn({"the cat's tail, 9 lives", "the cat's  paws", "a dog, the dog"}, 100);
    // the: 3 times; ' , cat dog s: twice, in the order of their bytes.
    REQUIRE(words.size() == first_free_token + 6);
    REQUIRE(words.encode("the ' , cat dog s") == std::vector<int>{4, 5, 6, 7, 8, 9});
    REQUIRE(words.decode(words.encode("the cat's  tail")) == "the cat ' s [UNK]");
    REQUIRE(words.decode({begin_token, 4, end_token, pad_token}) == "the");
    REQUIRE(WordTokenizer::learn({"a a a b b"}, 5).encode("a b") ==
            std::vector<int>{4, unknown_token});
    REQUIRE_THROWS_WITH(words.decode({10}), "there is no token 10 in a vocabulary of 10");
    REQUIRE_THROWS_WITH(WordTokenizer::learn({"a a"}, 4),
                        "a vocabulary of 4 has no room for a word");
}

}  // namespace ddp::test
