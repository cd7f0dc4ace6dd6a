// Five words, ventuno ventidue ventisei trentuno trentasei, and the merges that they teach. (_ is
// the space before a word.)
//
//     bytes                     _ v e n t u n o   _ v e n t i d u e   _ t r e n t u n o
//     1.  e + n      5 times    _ v en t u n o    _ v en t i d u e    _ t r en t u n o
//     2.  en + t     5          _ v ent u n o     _ v ent i d u e     _ t r ent u n o
//     3.  _ + v      3          _v ent u n o      _v ent i d u e      _ t r ent u n o
//     4.  _v + ent   3          _vent u n o       _vent i d u e       _ t r ent u n o
//     5. to 10.      2          _ + t, e + i, n + o, r + ent, s + ei, u + no
//     11. _vent + i  2          _vent uno         _venti d u e        _t rent uno
//     12. _t + rent  2          _vent uno         _venti d u e        _trent uno
//
// The pair that comes most often becomes a token, again and again, until the vocabulary is full. No
// grammar is needed: what occurs together becomes one. A word that was never seen is made of the
// same pieces: trentadue is _trent a d u e. No merge crosses the end of a word, so a word has the
// same tokens in all sentences.
#include "20_transformer/words/byte_pairs.hpp"

#include <cctype>
#include <mutex>
#include <optional>
#include <queue>
#include <stdexcept>
#include <unordered_set>

#include "20_transformer/words/tokenizer_json.hpp"

namespace ddp {
namespace {

constexpr int max_tokens = 1'000'000;
constexpr std::size_t longest_token = 256;  // in bytes; only a damaged file asks for more

// ---- Words

enum class ByteKind { space, letter, digit, other };

ByteKind kind_of_byte(char c) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte >= 0x80 || std::isalpha(byte))  // above 127: a part of a letter such as é
        return ByteKind::letter;
    return byte == ' ' ? ByteKind::space : std::isdigit(byte) ? ByteKind::digit : ByteKind::other;
}

// Cuts "il gatto, 2002" into " il", " gatto", ",", " 2002": runs of letters, of digits or of
// others, with the space before them. The first word gets one, too, or it would have other tokens
// than elsewhere.
std::vector<std::string> cut_into_words(const std::string& sentence) {
    std::vector<std::string> words;
    const std::string text = ' ' + sentence;
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
        // A space belongs to what follows it, unless that is another space.
        end = text[begin] == ' ' ? begin + 1 : begin;
        const ByteKind kind = end < text.size() ? kind_of_byte(text[end]) : ByteKind::space;
        // A word is a run of one kind.
        while (kind != ByteKind::space && end < text.size() && kind_of_byte(text[end]) == kind)
            end++;
        words.push_back(text.substr(begin, end - begin));
    }
    return words;
}

// Returns the bytes of a word as tokens.
std::vector<int> byte_tokens(const std::string& word) {
    std::vector<int> tokens;
    for (const char c : word)
        tokens.push_back(first_free_token + static_cast<std::uint8_t>(c));
    return tokens;
}

bool is_pair_at(const std::vector<int>& tokens, std::size_t k, const Merge& merge) {
    return k + 1 < tokens.size() && tokens[k] == merge.first && tokens[k + 1] == merge.second;
}

// Returns the tokens with each of the merge's pairs replaced, from the left: of a a a the first
// two.
std::vector<int> merged(const std::vector<int>& tokens, const Merge& merge, int becomes) {
    std::vector<int> result;
    for (std::size_t k = 0; k < tokens.size(); k++) {
        const bool is_pair = is_pair_at(tokens, k, merge);
        result.push_back(is_pair ? becomes : tokens[k]);
        k += is_pair;
    }
    return result;
}

std::uint64_t key_of(int left, int right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
}

// ---- Learning

// Knows how often each pair of neighbours comes in the sentences. A merge changes only the words
// that hold its pair, and in these only the pairs next to it: all merges together cost little more
// than the first count.
class PairCounts {
  public:
    explicit PairCounts(const std::vector<std::string>& sentences) {
        std::unordered_map<std::string, std::int64_t> count_of;
        for (const std::string& sentence : sentences)
            for (const std::string& word : cut_into_words(sentence))
                count_of[word]++;
        // Each different word is looked at once, with its weight.
        for (const auto& [text, count] : count_of) {
            words_.push_back({byte_tokens(text), count});
            const std::vector<int>& tokens = words_.back().tokens;
            for (std::size_t k = 0; k + 1 < tokens.size(); k++)
                add_pair({tokens[k], tokens[k + 1]}, words_.size() - 1);
        }
        put_into_queue();
    }

    // Returns the pair that comes most often, and of several the one with the smallest numbers; or
    // nothing if no pair comes twice. A pair is returned once.
    std::optional<Merge> max_frequent() {
        while (!queue_.empty()) {
            const Candidate best = queue_.top();
            queue_.pop();
            // Other merges may have broken up some of its places since it was put into the queue.
            const std::int64_t now = pairs_[best.key].count;
            if (now == best.count && now >= 2)
                return Merge(static_cast<int>(best.key >> 32), static_cast<int>(best.key));
            if (now < best.count)
                queue_.push({now, best.key});
            // (If it comes more often now, it is in the queue once more, further ahead.)
        }
        return {};
    }

    // Replaces the pair by token `becomes`, which is new, in all words: of x a b y the pairs x a
    // and b y become x ab and ab y.
    void apply(const Merge& merge, int becomes) {
        Pair& pair = pairs_[key_of(merge.first, merge.second)];
        const std::vector<std::size_t> places = std::move(pair.words);
        pair = {};
        for (const std::size_t i : places) {
            const std::vector<int> before = std::move(words_[i].tokens);
            std::vector<int> after;
            for (std::size_t k = 0; k < before.size(); k++) {
                if (!is_pair_at(before, k, merge)) {
                    after.push_back(before[k]);
                    continue;
                }
                // The neighbour on the left may be the new token itself: a b a b becomes ab ab.
                if (!after.empty()) {
                    remove_pair({after.back(), merge.first}, i);
                    add_pair({after.back(), becomes}, i);
                }
                after.push_back(becomes);
                k++;
                // The one on the right is what it was; if it begins a pair, it is next.
                if (k + 1 < before.size()) {
                    remove_pair({merge.second, before[k + 1]}, i);
                    add_pair({becomes, before[k + 1]}, i);
                }
            }
            words_[i].tokens = std::move(after);
        }
        put_into_queue();
    }

  private:
    struct Word {
        std::vector<int> tokens;
        std::int64_t count;  // how often the word comes
    };
    struct Pair {
        std::int64_t count = 0;          // how often it comes in all words
        std::vector<std::size_t> words;  // each that holds it, and some that no longer do
    };
    struct Candidate {
        std::int64_t count;
        std::uint64_t key;

        bool operator<(const Candidate& other) const {
            return count != other.count ? count < other.count : key > other.key;
        }
    };

    void add_pair(const Merge& neighbours, std::size_t word) {
        const std::uint64_t key = key_of(neighbours.first, neighbours.second);
        Pair& pair = pairs_[key];
        pair.count += words_[word].count;
        if (pair.words.empty() || pair.words.back() != word)
            pair.words.push_back(word);
        more_often_.insert(key);
    }

    void remove_pair(const Merge& neighbours, std::size_t word) {
        pairs_[key_of(neighbours.first, neighbours.second)].count -= words_[word].count;
    }

    // Puts the pairs that come more often than before into the queue. Those that come less often
    // are found there.
    void put_into_queue() {
        for (const std::uint64_t key : more_often_)
            queue_.push({pairs_[key].count, key});
        more_often_.clear();
    }

    std::vector<Word> words_;
    std::unordered_map<std::uint64_t, Pair> pairs_;
    std::unordered_set<std::uint64_t> more_often_;
    std::priority_queue<Candidate> queue_;
};

}  // namespace

struct BytePairs::Cache {
    std::mutex mutex;
    std::unordered_map<std::string, std::vector<int>> tokens_of;
};

BytePairs::BytePairs() : cache_(std::make_shared<Cache>()) {
    // Tokens 0 to 3 are the special ones, 4 to 259 the bytes, and merges come behind.
    spelling_.resize(first_free_token);
    spelling_[unknown_token] = unknown_spelling;
    for (int byte = 0; byte < 256; byte++)
        spelling_.emplace_back(1, static_cast<char>(byte));
}

void BytePairs::add(const Merge& merge) {
    // The new token is the next number, and stands for the bytes of both.
    merged_.emplace(key_of(merge.first, merge.second), size());
    merges_.push_back(merge);
    spelling_.push_back(spelling(merge.first) + spelling(merge.second));
}

BytePairs BytePairs::learn(const std::vector<std::string>& sentences, int vocabulary) {
    if (vocabulary < bytes_only || vocabulary > max_tokens)
        throw std::invalid_argument("a vocabulary has from " + std::to_string(bytes_only) + " to " +
                                    std::to_string(max_tokens) + " tokens, and not " +
                                    std::to_string(vocabulary));
    BytePairs pairs;
    PairCounts counts(sentences);
    while (pairs.size() < vocabulary) {
        // Greedy: the pair that shortens the sentences most becomes a token; then all over again.
        const std::optional<Merge> merge = counts.max_frequent();
        if (!merge)
            break;
        // Long rows of dashes are not worth a token.
        if (pairs.spelling(merge->first).size() + pairs.spelling(merge->second).size() >
            longest_token)
            continue;
        counts.apply(*merge, pairs.size());
        pairs.add(*merge);
    }
    return pairs;
}

std::vector<int> BytePairs::encode(const std::string& sentence) const {
    std::vector<int> tokens;
    if (sentence.empty())
        return tokens;
    // Ranks may be threads that share the tokenizer.
    const std::lock_guard lock(cache_->mutex);
    for (const std::string& word : cut_into_words(sentence)) {
        const auto [place, is_new] = cache_->tokens_of.try_emplace(word);
        if (is_new)
            place->second = encode_word(word);
        tokens.insert(tokens.end(), place->second.begin(), place->second.end());
    }
    return tokens;
}

// Repeats what learning did to this word: of the merges that it has a pair for, the earliest first.
std::vector<int> BytePairs::encode_word(const std::string& word) const {
    std::vector<int> tokens = byte_tokens(word);
    for (;;) {
        // Merges have the numbers of their tokens: the earliest made the smallest.
        int earliest = size();
        for (std::size_t k = 0; k + 1 < tokens.size(); k++)
            if (const auto place = merged_.find(key_of(tokens[k], tokens[k + 1]));
                place != merged_.end())
                earliest = std::min(earliest, place->second);
        if (earliest == size())
            return tokens;
        tokens = merged(tokens, merges_[static_cast<std::size_t>(earliest - bytes_only)], earliest);
    }
}

std::string BytePairs::decode(const std::vector<int>& tokens) const {
    // Padding, begin and end spell nothing.
    std::string text;
    for (const int token : tokens)
        text += spelling(token);
    // The space that encode put before the first word.
    return text.starts_with(' ') ? text.substr(1) : text;
}

const std::string& BytePairs::spelling(int token) const {
    if (token < 0 || token >= size())
        throw std::out_of_range("there is no token " + std::to_string(token) +
                                " in a vocabulary of " + std::to_string(size()));
    return spelling_[static_cast<std::size_t>(token)];
}

// ---- Files

std::string BytePairs::to_json() const {
    return merges_to_json(merges_);  // all else follows from them
}

BytePairs BytePairs::from_json(const std::string& json) {
    BytePairs pairs;
    for (const Merge& merge : merges_from_json(json)) {
        // A merge joins tokens that are there already, and makes one that is not too long: with
        // lengths that double, forty merges would fill any memory.
        const int least = first_free_token, made = pairs.size();
        if (merge.first < least || merge.second < least || merge.first >= made ||
            merge.second >= made)
            refuse_tokenizer("joins tokens that are not there yet");
        if (pairs.spelling(merge.first).size() + pairs.spelling(merge.second).size() >
            longest_token)
            refuse_tokenizer("has a token of more than " + std::to_string(longest_token) +
                             " bytes");
        if (made == max_tokens)
            refuse_tokenizer("has more than " + std::to_string(max_tokens) + " tokens");
        if (pairs.merged_.contains(key_of(merge.first, merge.second)))
            refuse_tokenizer("joins the same tokens twice");
        pairs.add(merge);
    }
    return pairs;
}

}  // namespace ddp
