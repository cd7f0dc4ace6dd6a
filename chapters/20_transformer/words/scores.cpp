//     reference     il gatto è sul tavolo
//     translation   il gatto sul tavolo
//
//     runs of       1     2     3     4 words
//     translation   4     3     2     1
//     matches       4     2     0     0        "il gatto", "sul tavolo"
//
//     BLEU   the geometric mean of 4/4, 2/3, ... , times a penalty, because 4 words are fewer than
//     5
#include "20_transformer/words/scores.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string_view>
#include <unordered_map>

#include "20_transformer/words/utf8.hpp"

namespace ddp {
namespace {

using RunCounts = std::unordered_map<std::u32string, std::int64_t>;

std::vector<std::u32string> split_at_white_space(const std::u32string& text) {
    std::vector<std::u32string> words;
    bool inside = false;
    for (const char32_t character : text) {
        const bool is_space = is_white_space(character);
        if (!is_space && !inside)
            words.emplace_back();
        if (!is_space)
            words.back() += character;
        inside = !is_space;
    }
    return words;
}

// Returns how often each run of `length` neighbours comes.
RunCounts word_runs(const std::vector<std::u32string>& words, std::size_t length) {
    RunCounts counts;
    for (std::size_t i = 0; i + length <= words.size(); i++) {
        std::u32string run;
        for (std::size_t k = i; k < i + length; k++)
            run += words[k] + U' ';  // no word has one
        counts[run]++;
    }
    return counts;
}

RunCounts character_runs(const std::u32string& text, std::size_t length) {
    RunCounts counts;
    for (std::size_t i = 0; i + length <= text.size(); i++)
        counts[text.substr(i, length)]++;
    return counts;
}

// Returns how many runs both have. One that the reference has once counts once.
std::int64_t common_runs(const RunCounts& translation, const RunCounts& reference) {
    std::int64_t common = 0;
    for (const auto& [run, count] : translation)
        if (const auto place = reference.find(run); place != reference.end())
            common += std::min(count, place->second);
    return common;
}

std::int64_t all_runs(std::size_t length, std::size_t run) {
    return static_cast<std::int64_t>(length < run ? 0 : length - run + 1);
}

void add_numbers(std::span<std::int64_t> to, std::span<const std::int64_t> numbers) {
    std::ranges::transform(to, numbers, to.begin(), std::plus());
}

// Returns the fewest replacements, insertions and deletions between two sequences: row by row of
// the table whose entry (i, j) is the answer for the first i items of one and the first j of the
// other.
template <class Sequence>
std::int64_t edit_distance(const Sequence& from, const Sequence& to) {
    std::vector<std::int64_t> row(to.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 0; i < from.size(); i++) {
        std::int64_t diagonal = row[0]++;
        for (std::size_t j = 0; j < to.size(); j++) {
            const std::int64_t replaced = diagonal + (from[i] != to[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

double share(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// ---- The words of BLEU

// Returns whether this is punctuation of ASCII, or a space, but none of ' , . and -
bool stands_alone(char32_t c) {
    return (c >= U'{' && c <= U'~') || (c >= U'[' && c <= U'`') || (c >= U' ' && c <= U'&') ||
           (c >= U'(' && c <= U'+') || (c >= U':' && c <= U'@') || c == U'/';
}

void replace_all(std::u32string& text, std::u32string_view what, std::u32string_view by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
        text.replace(at, what.size(), by);
}

enum class Alone { first, second };

// Puts spaces around one of two neighbours wherever they fit. Pairs do not overlap: of three such
// characters in a row the last two are none.
template <class Fits>
std::u32string spaced(const std::u32string& text, Alone alone, Fits fits) {
    std::u32string result;
    for (std::size_t i = 0; i < text.size(); i++)
        if (i + 1 < text.size() && fits(text[i], text[i + 1])) {
            const std::u32string pair = {text[i], U' ', text[i + 1]};
            result += alone == Alone::first ? U' ' + pair : pair + U' ';
            i++;
        } else {
            result += text[i];
        }
    return result;
}

}  // namespace

std::vector<std::u32string> bleu_words(const std::string& sentence) {
    std::u32string text = code_points(sentence);
    while (!text.empty() && is_white_space(text.back()))
        text.pop_back();
    // Old test sets were web pages.
    replace_all(text, U"<skipped>", U"");
    replace_all(text, U"-\n", U"");
    replace_all(text, U"\n", U" ");
    replace_all(text, U"&quot;", U"\"");
    replace_all(text, U"&amp;", U"&");
    replace_all(text, U"&lt;", U"<");
    replace_all(text, U"&gt;", U">");
    // Punctuation stands alone; a point or comma unless it is between digits; a dash behind a
    // digit.
    std::u32string apart = U" ";
    for (const char32_t c : text)
        apart += stands_alone(c) ? std::u32string{U' ', c, U' '} : std::u32string{c};
    apart += U' ';
    const auto is_point = [](char32_t c) { return c == U'.' || c == U','; };
    const auto is_digit = [](char32_t c) { return c >= U'0' && c <= U'9'; };
    apart = spaced(apart, Alone::second,
                   [&](char32_t a, char32_t b) { return !is_digit(a) && is_point(b); });
    apart = spaced(apart, Alone::first,
                   [&](char32_t a, char32_t b) { return is_point(a) && !is_digit(b); });
    apart = spaced(apart, Alone::second,
                   [&](char32_t a, char32_t b) { return is_digit(a) && b == U'-'; });
    return split_at_white_space(apart);
}

void BleuCounts::add(const std::string& translation, const std::string& reference) {
    const auto ours = bleu_words(translation), theirs = bleu_words(reference);
    words += std::ssize(ours);
    reference_words += std::ssize(theirs);
    for (std::size_t n = 1; n <= matches.size(); n++) {
        matches[n - 1] += common_runs(word_runs(ours, n), word_runs(theirs, n));
        runs[n - 1] += all_runs(ours.size(), n);
    }
}

void BleuCounts::add(const BleuCounts& others) {
    add_numbers(matches, others.matches);
    add_numbers(runs, others.runs);
    words += others.words;
    reference_words += others.reference_words;
}

double BleuCounts::score() const {
    // Without a single right word, or without a run of four, the score is 0.
    if (matches[0] == 0 || runs.back() == 0)
        return 0;
    // A length that has no match counts as half a match, the next such length as a quarter:
    // otherwise one zero would make the whole product zero.
    double log_sum = 0, smoothing = 1;
    for (std::size_t n = 0; n < matches.size(); n++) {
        if (matches[n] == 0)
            smoothing *= 2;
        const double matched = matches[n] == 0 ? 1 / smoothing : static_cast<double>(matches[n]);
        log_sum += std::log(matched / static_cast<double>(runs[n]));
    }
    // A translation that leaves words out has few wrong ones. So it pays for being short.
    const double ratio = static_cast<double>(reference_words) / static_cast<double>(words);
    const double brevity = std::min(1.0, std::exp(1 - ratio));
    return 100 * brevity * std::exp(log_sum / static_cast<double>(matches.size()));
}

void ChrfCounts::add(const std::string& translation, const std::string& reference) {
    const auto without_spaces = [](const std::string& sentence) {
        std::u32string text = code_points(sentence);
        std::erase_if(text, is_white_space);
        return text;
    };
    const std::u32string ours = without_spaces(translation), theirs = without_spaces(reference);
    for (std::size_t n = 1; n <= matches.size(); n++) {
        matches[n - 1] += common_runs(character_runs(ours, n), character_runs(theirs, n));
        reference_runs[n - 1] += all_runs(theirs.size(), n);
        // Where a reference is too short to have any, the translation's are not held against it.
        runs[n - 1] += theirs.size() < n ? 0 : all_runs(ours.size(), n);
    }
}

void ChrfCounts::add(const ChrfCounts& others) {
    add_numbers(matches, others.matches);
    add_numbers(runs, others.runs);
    add_numbers(reference_runs, others.reference_runs);
}

double ChrfCounts::score() const {
    double precision = 0, recall = 0, lengths = 0;
    for (std::size_t n = 0; n < matches.size(); n++)
        if (runs[n] > 0 && reference_runs[n] > 0) {
            precision += share(matches[n], runs[n]);
            recall += share(matches[n], reference_runs[n]);
            lengths++;
        }
    if (precision + recall == 0)
        return 0;
    // The weighted harmonic mean of both, with recall twice as important: beta is 2.
    constexpr double beta_squared = 4;
    precision /= lengths;
    recall /= lengths;
    return 100 * (1 + beta_squared) * precision * recall / (beta_squared * precision + recall);
}

void ErrorCounts::add(const std::string& translation, const std::string& reference) {
    const std::u32string ours = code_points(translation), theirs = code_points(reference);
    const std::int64_t errors = edit_distance(ours, theirs);
    character_errors += errors;
    characters += std::ssize(theirs);
    const auto our_words = split_at_white_space(ours), their_words = split_at_white_space(theirs);
    word_errors += edit_distance(our_words, their_words);
    words += std::ssize(their_words);
    sentences++;
    right_sentences += errors == 0;
}

void ErrorCounts::add(const ErrorCounts& others) {
    character_errors += others.character_errors;
    characters += others.characters;
    word_errors += others.word_errors;
    words += others.words;
    sentences += others.sentences;
    right_sentences += others.right_sentences;
}

double ErrorCounts::character_error_rate() const {
    return share(character_errors, characters);
}

double ErrorCounts::word_error_rate() const {
    return share(word_errors, words);
}

}  // namespace ddp
