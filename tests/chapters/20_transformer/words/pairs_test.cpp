// The reader of tab-separated pairs: what it refuses and how it says so, and the three splits.
#include "20_transformer/words/pairs.hpp"

#include <map>
#include <set>

#include "20_transformer/words/utf8.hpp"
#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

std::string refusal_of(const std::string& text) {
    return data_error([&] { parse_pairs(text, "a.tsv"); });
}

// Pairs of `groups` groups: group g has g % 5 + 1 of them.
std::vector<SentencePair> grouped_pairs(int groups) {
    std::vector<SentencePair> pairs;
    for (int g = 0; g < groups; g++)
        for (int i = 0; i <= g % 5; i++) {
            const std::string name = std::to_string(g) + "." + std::to_string(i);
            pairs.push_back({"source " + name, "target " + name, "group " + std::to_string(g)});
        }
    return pairs;
}

}  // namespace

TEST_CASE("pairs: a line is a sentence, a tab and its translation") {
    const std::vector<SentencePair> pairs =
        parse_pairs("\xEF\xBB\xBFthe cat\til gatto\r\n city \tcittà", "a.tsv");
    REQUIRE(pairs == std::vector<SentencePair>{{"the cat", "il gatto", ""}, {"city", "città", ""}});
    for (const std::string end : {"\n", "\r\n", "\n\n", "\n\r\n\n"})
        REQUIRE(parse_pairs("the cat\til gatto\ncity\tcittà" + end, "a.tsv") == pairs);
}

TEST_CASE("pairs: a bad line is named by its number") {
    const std::string good = "a\tb\n";
    REQUIRE(refusal_of("") ==
            "'a.tsv' is empty: write a sentence, a tab and its translation into each line.");
    REQUIRE(refusal_of("\n\n") == refusal_of(""));
    REQUIRE(refusal_of(good + "no tab\n") ==
            "'a.tsv', line 2, has no tab: write a sentence, a tab and its translation.");
    REQUIRE(refusal_of(good + good + "\n" + good) ==
            "'a.tsv', line 3, has no tab: write a sentence, a tab and its translation.");
    REQUIRE(refusal_of("a\tb\tc\n") ==
            "'a.tsv', line 1, has 3 columns: keep the sentence and its translation (cut -f1,2).");
    REQUIRE(refusal_of(good + "citt\xE0\tb") ==
            "'a.tsv', line 2, is not UTF-8: convert the file (iconv -t UTF-8).");
    REQUIRE(refusal_of(good + "  \tb") ==
            "'a.tsv', line 2, has nothing before its tab: write the sentence there, or delete the "
            "line.");
    REQUIRE(refusal_of("a\t") ==
            "'a.tsv', line 1, has nothing after its tab: write the sentence there, or delete the "
            "line.");
    REQUIRE(refusal_of("a\t" + std::string(4097, 'b')) ==
            "'a.tsv', line 1, has a sentence of 4097 bytes after its tab, and at most 4096 are "
            "read: split it.");
    REQUIRE(refusal_of("a\t" + std::string(4096, 'b')).empty());
    REQUIRE(refusal_of("\x1B[2J\tb") ==
            "'a.tsv', line 1, has a control character before its tab: delete it.");
    REQUIRE(data_error([] { load_pairs("/nowhere/a.tsv", 1); }) ==
            "'/nowhere/a.tsv' was not found: check the path.");
}

TEST_CASE("splits: each group in one, each sentence in one, every pair somewhere") {
    std::vector<SentencePair> pairs = grouped_pairs(400);
    const std::size_t all = pairs.size();
    const PairCorpus corpus = split_pairs("x", pairs, 5);
    REQUIRE(corpus.train.size() + corpus.valid.size() + corpus.test.size() == all);
    REQUIRE((corpus.valid.size() == all / 20 && corpus.test.size() == all / 20));
    std::map<std::string, std::set<int>> splits_of;
    int number = 0;
    for (const auto* split : {&corpus.train, &corpus.valid, &corpus.test}) {
        for (const SentencePair& pair : *split)
            splits_of[pair.group].insert(number);
        number++;
    }
    REQUIRE(splits_of.size() == 400);
    for (const auto& [group, splits] : splits_of)
        REQUIRE(splits.size() == 1);
    REQUIRE(split_pairs("x", pairs, 5).test == corpus.test);
    REQUIRE(split_pairs("x", pairs, 6).test != corpus.test);

    // A sentence that all groups share can only be learnt.
    for (int g = 0; g < 400; g++)
        pairs.push_back({"shared", "condiviso", "group " + std::to_string(g)});
    const PairCorpus shared = split_pairs("x", pairs, 5);
    for (const auto* split : {&shared.valid, &shared.test})
        for (const SentencePair& pair : *split)
            REQUIRE(pair.source != "shared");
    REQUIRE(shared.train.size() + shared.valid.size() + shared.test.size() < pairs.size());
}

TEST_CASE("splits: without groups, pairs with the same source stay together") {
    std::vector<SentencePair> pairs;
    for (int i = 0; i < 300; i++)
        pairs.push_back({"source " + std::to_string(i % 100), "target " + std::to_string(i), ""});
    const PairCorpus corpus = split_pairs("x", pairs, 1);
    REQUIRE((corpus.valid.size() == 15 && corpus.test.size() == 15 && corpus.train.size() == 270));
    const std::string few = "'x' has too few pairs for training, validation and test: add some.";
    REQUIRE(data_error([&] { split_pairs("x", {pairs[0], pairs[1]}, 1); }) == few);
    REQUIRE(data_error([&] { split_pairs("x", {pairs[0], pairs[100], pairs[200]}, 1); }) == few);
    REQUIRE(split_pairs("x", {pairs[0], pairs[1], pairs[2]}, 1).train.size() == 1);
}

TEST_CASE("UTF-8 has one form for each character, and no others") {
    REQUIRE(code_points("aé€𝄞") == U"aé€𝄞");
    REQUIRE(code_points("a\xE0z") == U"a\xFFFDz");
    for (const std::string& bad :
         {std::string("\x80"), std::string("\xC3"), std::string("\xC0\xAF"),
          std::string("\xED\xA0\x80"), std::string("\xF4\x90\x80\x80"), std::string("\xE2\x82"),
          std::string("\xFF")})
        REQUIRE(!is_utf8("a" + bad));
    for (const std::string& good : {std::string(""), std::string("\xF4\x8F\xBF\xBF"),
                                    std::string("\xED\x9F\xBF"), std::string(1, '\0')})
        REQUIRE(is_utf8(good));
}

}  // namespace ddp::test
