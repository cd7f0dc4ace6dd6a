//     twenty-one<tab>ventuno
//     the cat<tab>il gatto
//
// The file is a stranger's: each line is checked before it is believed.
#include "20_transformer/words/pairs.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "03_network/loader.hpp"
#include "20_transformer/words/utf8.hpp"
#include "common/data/file.hpp"

namespace ddp {
namespace {

// One line of a file that is being read, for error messages.
class PairLine {
  public:
    PairLine(const std::string& name, std::size_t number) : name_(name), number_(number) {}

    // Returns the pair that `line` holds, or throws DataError.
    SentencePair parse(std::string_view line) const {
        const auto tabs = std::ranges::count(line, '\t');
        if (tabs == 0)
            fail("has no tab: write a sentence, a tab and its translation.");
        if (tabs > 1)
            fail("has " + std::to_string(tabs + 1) +
                 " columns: keep the sentence and its translation (cut -f1,2).");
        if (!is_utf8(line))
            fail("is not UTF-8: convert the file (iconv -t UTF-8).");
        const std::size_t tab = line.find('\t');
        return {side(line.substr(0, tab), "before"), side(line.substr(tab + 1), "after"), ""};
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw DataError(
            printable("'" + name_ + "', line " + std::to_string(number_) + ", " + what));
    }

    // Returns one side of the pair without spaces at its ends.
    std::string side(std::string_view text, const std::string& where) const {
        const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
        text.remove_prefix(begin);
        text.remove_suffix(text.size() - (text.find_last_not_of(' ') + 1));
        if (text.empty())
            fail("has nothing " + where +
                 " its tab: write the sentence there, or delete the line.");
        if (text.size() > longest_sentence)
            fail("has a sentence of " + std::to_string(text.size()) + " bytes " + where +
                 " its tab, and at most " + std::to_string(longest_sentence) +
                 " are read: split it.");
        const auto is_control = [](char c) { return (c >= 0 && c < ' ') || c == 0x7F; };
        if (std::ranges::any_of(text, is_control))
            fail("has a control character " + where + " its tab: delete it.");
        return std::string(text);
    }

    const std::string& name_;
    const std::size_t number_;
};

// Returns the pairs' numbers, group by group, the groups in the order of their first pair.
std::vector<std::vector<std::size_t>> grouped(const std::vector<SentencePair>& pairs) {
    std::vector<std::vector<std::size_t>> groups;
    std::unordered_map<std::string_view, std::size_t> number_of;
    for (std::size_t i = 0; i < pairs.size(); i++) {
        const std::string& key = pairs[i].group.empty() ? pairs[i].source : pairs[i].group;
        const auto [place, is_new] = number_of.try_emplace(key, groups.size());
        if (is_new)
            groups.emplace_back();
        groups[place->second].push_back(i);
    }
    return groups;
}

}  // namespace

std::vector<SentencePair> parse_pairs(std::string_view text, const std::string& name) {
    if (text.starts_with("\xEF\xBB\xBF"))  // what some editors put before UTF-8
        text.remove_prefix(3);
    while (text.ends_with('\n') || text.ends_with('\r'))  // and empty lines at the end
        text.remove_suffix(1);
    std::vector<SentencePair> pairs;
    for (std::size_t number = 1; !text.empty(); number++) {
        const std::size_t length = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, length);
        text.remove_prefix(std::min(length + 1, text.size()));
        if (line.ends_with('\r'))
            line.remove_suffix(1);
        pairs.push_back(PairLine(name, number).parse(line));
    }
    if (pairs.empty())
        refuse(name, "is empty: write a sentence, a tab and its translation into each line.");
    return pairs;
}

PairCorpus split_pairs(std::string name, std::vector<SentencePair> pairs, std::uint64_t seed) {
    const std::vector<std::vector<std::size_t>> groups = grouped(pairs);
    const std::size_t wanted = std::clamp<std::size_t>(pairs.size() / 20, 1, 1000);

    // Deal whole groups: to the first split that has room for one. A split that is still empty
    // takes a group of any size.
    enum Split { valid, test, train };
    std::array<std::size_t, 2> dealt{};
    std::vector<Split> split_of(pairs.size(), train);
    for (const int g : shuffled(static_cast<int>(groups.size()), seed, 0)) {
        const std::vector<std::size_t>& group = groups[static_cast<std::size_t>(g)];
        for (const Split split : {valid, test})
            if (dealt[split] == 0 || dealt[split] + group.size() <= wanted) {
                dealt[split] += group.size();
                for (const std::size_t i : group)
                    split_of[i] = split;
                break;
            }
    }

    // A sentence that two groups share must not be learnt from one and tested with the other.
    std::unordered_set<std::string> learnt;
    for (std::size_t i = 0; i < pairs.size(); i++)
        if (split_of[i] == train)
            learnt.insert(pairs[i].source);
    PairCorpus corpus{std::move(name), {}, {}, {}};
    for (std::size_t i = 0; i < pairs.size(); i++) {
        if (split_of[i] == train)
            corpus.train.push_back(std::move(pairs[i]));
        else if (!learnt.contains(pairs[i].source))
            (split_of[i] == valid ? corpus.valid : corpus.test).push_back(std::move(pairs[i]));
    }
    if (corpus.train.empty() || corpus.valid.empty() || corpus.test.empty())
        refuse(corpus.name, "has too few pairs for training, validation and test: add some.");
    return corpus;
}

PairCorpus load_pairs(const std::string& tsv_file, std::uint64_t seed) {
    const std::vector<std::uint8_t> bytes = read_file(tsv_file);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return split_pairs(tsv_file, parse_pairs(text, tsv_file), seed);
}

}  // namespace ddp
