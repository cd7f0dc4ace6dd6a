// 1. Parse      each file into descriptions, line by line; they come from outside, maybe damaged
// 2. Join       an Italian description with the English one that it translates, by the md5 of that
// 3. Align      first lines, then paragraph with paragraph, then sentence with sentence
#include "20_transformer/words/package_descriptions.hpp"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "20_transformer/words/utf8.hpp"
#include "common/data/file.hpp"

namespace ddp {
namespace {

constexpr std::uint64_t split_seed = 18;  // fixed: a test set is one that nobody has learnt from

struct Description {
    std::string package, md5, first_line;
    std::vector<std::string> paragraphs;  // in one line each; empty where it is a list
};

// ---- 1. Parse

class DescriptionReader {
  public:
    // `language` is that of the file, "it" say.
    DescriptionReader(std::string_view text, const std::string& language)
        : rest_(text), name_("Translation-" + language), field_("Description-" + language) {}

    std::vector<Description> read() {
        std::vector<Description> all;
        while (!rest_.empty()) {
            const Description next = read_one();
            if (!next.md5.empty())
                all.push_back(next);
        }
        if (all.empty())
            refuse(name_, "has no description: fetch it by `./book data translations`.");
        return all;
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw DataError(printable("'" + name_ + "', line " + std::to_string(line_) + ", " + what +
                                  ": fetch it again by `./book data translations`."));
    }

    std::string_view take_line() {
        const std::size_t length = std::min(rest_.find('\n'), rest_.size());
        const std::string_view line = rest_.substr(0, length);
        rest_.remove_prefix(std::min(length + 1, rest_.size()));
        line_++;
        if (!is_utf8(line))
            fail("is not UTF-8");
        return line;
    }

    // Returns the fields up to the next empty line; without an md5 if there are none.
    Description read_one() {
        Description description;
        bool in_text = false, new_paragraph = true;
        while (!rest_.empty()) {
            const std::string_view line = take_line();
            if (line.empty())
                break;
            if (line[0] == ' ') {
                if (in_text)
                    add_line(description, line.substr(1), new_paragraph);
                continue;
            }
            const std::size_t colon = line.find(": ");
            if (colon == line.npos)
                fail("has no field and continues none");
            const std::string_view field = line.substr(0, colon), value = line.substr(colon + 2);
            in_text = field == field_;
            if (in_text)
                description.first_line = value;
            else if (field == "Package")
                description.package = value;
            else if (field == "Description-md5")
                description.md5 = value;
        }
        const bool is_whole = !description.package.empty() && !description.md5.empty() &&
                              !description.first_line.empty();
        const bool is_nothing = description.package.empty() && description.md5.empty() &&
                                description.first_line.empty();
        if (!is_whole && !is_nothing)
            fail("ends a description that lacks its package, its md5 or its text");
        return description;
    }

    // Adds a line, without the space before it, to the last paragraph or to a new one.
    static void add_line(Description& description, std::string_view line, bool& new_paragraph) {
        if (line == ".") {
            new_paragraph = true;
            return;
        }
        std::vector<std::string>& paragraphs = description.paragraphs;
        const bool is_list = line.starts_with(' ') || line.starts_with('\t') || line.empty();
        if (new_paragraph)
            paragraphs.emplace_back(is_list ? "" : line);
        else if (is_list)
            paragraphs.back().clear();
        else if (!paragraphs.back().empty())
            paragraphs.back().append(" ").append(line);
        new_paragraph = false;
    }

    std::string_view rest_;
    const std::string name_, field_;
    std::size_t line_ = 0;
};

// ---- 3. Align

// Cuts behind . ! or ? where a space and a capital (or another letter than those of English)
// follow. That is wrong behind an abbreviation, and then mostly in one language only, so that the
// numbers differ.
std::vector<std::string> cut_into_sentences(const std::string& paragraph) {
    std::vector<std::string> sentences(1);
    for (std::size_t i = 0; i < paragraph.size(); i++) {
        const char before = i > 0 ? paragraph[i - 1] : ' ';
        const char next = i + 1 < paragraph.size() ? paragraph[i + 1] : 'a';
        const bool ends = before == '.' || before == '!' || before == '?';
        const bool begins = (next >= 'A' && next <= 'Z') || next == '"' || next == '(' ||
                            static_cast<unsigned char>(next) >= 0x80;
        if (paragraph[i] == ' ' && ends && begins)
            sentences.emplace_back();
        else
            sentences.back() += paragraph[i];
    }
    return sentences;
}

// Returns whether parse_pairs would take this for a side of a pair.
bool is_sentence(const std::string& text) {
    const auto is_control = [](char c) { return (c >= 0 && c < ' ') || c == 0x7F; };
    return !text.empty() && text.size() <= longest_sentence && text.front() != ' ' &&
           text.back() != ' ' && std::ranges::none_of(text, is_control);
}

// Collects pairs, each of them once.
class PairCollection {
  public:
    void add(const std::string& source, const std::string& target, const std::string& package) {
        if (source == target || !is_sentence(source) || !is_sentence(target))
            return;
        if (seen_.insert(source + '\t' + target).second)
            pairs_.push_back({source, target, package});
    }

    std::vector<SentencePair> take() { return std::move(pairs_); }

  private:
    std::vector<SentencePair> pairs_;
    std::unordered_set<std::string> seen_;
};

void add_paragraphs(PairCollection& pairs, const Description& english, const Description& italian) {
    if (english.paragraphs.size() != italian.paragraphs.size())
        return;
    for (std::size_t i = 0; i < english.paragraphs.size(); i++) {
        const std::string &source = english.paragraphs[i], &target = italian.paragraphs[i];
        if (source.empty() || target.empty())
            continue;  // a list, or not in one of the two
        const auto sources = cut_into_sentences(source), targets = cut_into_sentences(target);
        if (sources.size() != targets.size())
            pairs.add(source, target, english.package);
        else
            for (std::size_t k = 0; k < sources.size(); k++)
                pairs.add(sources[k], targets[k], english.package);
    }
}

}  // namespace

std::vector<SentencePair> join_descriptions(std::string_view english, std::string_view italian,
                                            DescriptionParts parts) {
    const std::vector<Description> originals = DescriptionReader(english, "en").read();
    const std::vector<Description> translations = DescriptionReader(italian, "it").read();
    // 2. Join. Several packages may share a description, and then its pairs are those of the first.
    std::unordered_map<std::string_view, const Description*> original_of;
    for (const Description& original : originals)
        original_of.try_emplace(original.md5, &original);
    std::vector<std::pair<const Description*, const Description*>> joined;
    for (const Description& translation : translations)
        if (const auto place = original_of.find(translation.md5); place != original_of.end())
            joined.emplace_back(place->second, &translation);

    PairCollection pairs;
    for (const auto& [original, translation] : joined)
        pairs.add(original->first_line, translation->first_line, original->package);
    if (parts == DescriptionParts::all)
        for (const auto& [original, translation] : joined)
            add_paragraphs(pairs, *original, *translation);
    return pairs.take();
}

std::string usual_descriptions_folder() {
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    return program.parent_path().parent_path().parent_path() / "translations";
}

PairCorpus load_package_descriptions(const std::string& folder, DescriptionParts parts) {
    std::vector<std::vector<std::uint8_t>> files;
    for (const char* name : {"Translation-en", "Translation-it"}) {
        const std::filesystem::path path = std::filesystem::path(folder) / name;
        if (!std::filesystem::exists(path))
            refuse(path.string(), "is not here yet: fetch it by `./book data translations`.");
        files.push_back(read_file(path));
    }
    const auto text = [](const std::vector<std::uint8_t>& bytes) {
        return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    return split_pairs("package descriptions",
                       join_descriptions(text(files[0]), text(files[1]), parts), split_seed);
}

}  // namespace ddp
