// The reader of package descriptions: what it joins, what it leaves out, and damaged files.
#include "20_transformer/words/package_descriptions.hpp"

#include <filesystem>
#include <map>
#include <set>

#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// One description as it stands in a file.
std::string stanza(const std::string& language, const std::string& package, const std::string& md5,
                   const std::string& text) {
    return "Package: " + package + "\nDescription-md5: " + md5 + "\nDescription-" + language +
           ": " + text + "\n\n";
}

const std::string english_file =
    stanza("en", "ring", "01",
           "passes sums on\n The ring is slow. It is cheap.\n .\n One ring, e.g.\n for four.") +
    stanza("en", "tree", "02",
           "adds in pairs\n It has:\n  * leaves\n  * a root\n .\n It is fast! (It is costly.)") +
    stanza("en", "tree-doc", "03", "adds in pairs\n It is fast!") +
    stanza("en", "gnu", "04", "GNU") + stanza("en", "only-english", "05", "nothing");
const std::string italian_file =
    stanza(
        "it", "ring", "01",
        "trasmette somme\n L'anello è lento. È economico.\n .\n Un anello, ad es.\n Per quattro.") +
    stanza("it", "tree", "02", "somma a coppie\n Ha:\n  * foglie\n .\n È veloce! (È costoso.)") +
    stanza("it", "tree-doc", "03", "somma a coppie\n È veloce!") +
    stanza("it", "gnu", "04", "GNU") + stanza("it", "only-italian", "06", "niente");

// Many packages, each with two pairs of its own.
std::string many(const std::string& language, const std::string& word) {
    std::string text;
    for (int i = 0; i < 60; i++) {
        const std::string number = std::to_string(i);
        text += stanza(language, "package" + number, "md5" + number,
                       word + " " + number + "\n " + word + " number " + number + ".");
    }
    return text;
}

}  // namespace

TEST_CASE("descriptions: first lines, then sentence by sentence") {
    const std::vector<SentencePair> pairs =
        join_descriptions(english_file, italian_file, DescriptionParts::all);
    REQUIRE(pairs == std::vector<SentencePair>{
                         {"passes sums on", "trasmette somme", "ring"},
                         {"adds in pairs", "somma a coppie", "tree"},
                         {"The ring is slow.", "L'anello è lento.", "ring"},
                         {"It is cheap.", "È economico.", "ring"},
                         {"One ring, e.g. for four.", "Un anello, ad es. Per quattro.", "ring"},
                         {"It is fast!", "È veloce!", "tree"},
                         {"(It is costly.)", "(È costoso.)", "tree"}});
    REQUIRE(join_descriptions(english_file, italian_file, DescriptionParts::one_line) ==
            std::vector<SentencePair>(pairs.begin(), pairs.begin() + 2));
    // Without its English original a translation is of no use, nor with another number of
    // paragraphs.
    REQUIRE(join_descriptions(stanza("en", "a", "1", "x\n One.\n .\n Two."),
                              stanza("it", "a", "1", "y\n Uno. Due."), DescriptionParts::all)
                .size() == 1);
    REQUIRE(join_descriptions(stanza("en", "a", "1", "x\ty"), stanza("it", "a", "1", "z"),
                              DescriptionParts::all)
                .empty());
}

TEST_CASE("descriptions: a package is in one split only") {
    const TemporaryFolder folder;
    const auto write = [&](const std::string& name, const std::string& text) {
        return folder.write(name, Bytes(text.begin(), text.end()));
    };
    const std::string english = write("Translation-en", many("en", "word")).string();
    REQUIRE(data_error([&] { load_package_descriptions(folder.path().string()); }) ==
            "'" + (folder.path() / "Translation-it").string() +
                "' is not here yet: fetch it by `./book data translations`.");
    write("Translation-it", many("it", "parola"));
    const PairCorpus corpus = load_package_descriptions(folder.path().string());
    REQUIRE((corpus.train.size() == 108 && corpus.valid.size() == 6 && corpus.test.size() == 6));
    std::map<std::string, std::set<const void*>> splits_of;
    for (const auto* split : {&corpus.train, &corpus.valid, &corpus.test})
        for (const SentencePair& pair : *split)
            splits_of[pair.group].insert(split);
    REQUIRE(splits_of.size() == 60);
    for (const auto& [package, splits] : splits_of)
        REQUIRE(splits.size() == 1);
}

TEST_CASE("descriptions: a damaged file is refused in one sentence, or what it has is joined") {
    const auto refusal = [](const std::string& english, const std::string& italian) {
        return data_error([&] { join_descriptions(english, italian, DescriptionParts::all); });
    };
    const std::string advice = ": fetch it again by `./book data translations`.";
    REQUIRE(refusal("", italian_file) ==
            "'Translation-en' has no description: fetch it by `./book data translations`.");
    REQUIRE(refusal(english_file, "Package: a\nno field\n") ==
            "'Translation-it', line 2, has no field and continues none" + advice);
    REQUIRE(
        refusal(english_file, "Package: a\nDescription-it: b\n\n") ==
        "'Translation-it', line 3, ends a description that lacks its package, its md5 or its text" +
            advice);
    REQUIRE(refusal("Package: \xE8\n", italian_file) ==
            "'Translation-en', line 1, is not UTF-8" + advice);
}

}  // namespace ddp::test
