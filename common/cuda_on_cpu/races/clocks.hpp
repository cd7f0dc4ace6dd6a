#pragma once
// The clocks of one launch: what a thread knows of the others.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace cuda_on_cpu {

// A moment in the life of a thread, in three parts: how often its block has met, how often its warp
// has met since, and how often the thread has published what it did since. A part that is full
// stands still: then more counts as ordered than is, and never less.
class Moment {
  public:
    friend bool operator<=(Moment a, Moment b) { return a.bits_ <= b.bits_; }
    bool is_before_block_of(Moment other) const { return bits_ >> 40 < other.bits_ >> 40; }
    bool is_before_warp_of(Moment other) const { return bits_ >> 20 < other.bits_ >> 20; }
    bool has_met_block() const { return bits_ >> 40 != 0; }
    bool has_met_warp() const { return (bits_ >> 20 & most) != 0; }
    void block_meets() { bits_ = bits_ >> 40 < most ? ((bits_ >> 40) + 1) << 40 : bits_; }
    void warp_meets() {
        if ((bits_ >> 20 & most) < most)
            bits_ = ((bits_ >> 20) + 1) << 20;
    }
    void publish() {
        if ((bits_ & most) < most)
            bits_++;
    }

  private:
    static constexpr std::uint64_t most = (1 << 20) - 1;
    std::uint64_t bits_ = 0;
};

// A thread, a warp or a block of the launch. Threads are numbered through all blocks, and warps
// too.
enum class Party : std::uint64_t { thread = 0, warp = 1ull << 60, block = 2ull << 60 };

// For some threads, warps and blocks, up to which moment all that they did comes before whoever
// knows it. Never changed, so that many threads share one.
class Known;
using Knowledge = std::shared_ptr<const Known>;  // nullptr: nothing

class Known {
  public:
    // Returns the moment up to which `number` is known; nullptr if it is not.
    const Moment* of(Party party, std::uint64_t number) const {
        const std::uint64_t key = key_of(party, number);
        const auto at = std::lower_bound(
            items_.begin(), items_.end(), key,
            [](const Item& item, std::uint64_t wanted) { return item.first < wanted; });
        return at != items_.end() && at->first == key ? &at->second : nullptr;
    }
    void add(Party party, std::uint64_t number, Moment moment) {
        const std::uint64_t key = key_of(party, number);
        const auto at = std::lower_bound(
            items_.begin(), items_.end(), key,
            [](const Item& item, std::uint64_t wanted) { return item.first < wanted; });
        if (at == items_.end() || at->first != key)
            items_.insert(at, {key, moment});
        else if (at->second <= moment)
            at->second = moment;
    }
    // Returns what both know together.
    static Knowledge join(const Knowledge& a, const Knowledge& b) {
        if (!a || a == b)
            return b;
        if (!b)
            return a;
        auto both = std::make_shared<Known>();
        both->items_.reserve(a->items_.size() + b->items_.size());
        auto i = a->items_.begin(), j = b->items_.begin();
        while (i != a->items_.end() || j != b->items_.end()) {
            if (j == b->items_.end() || (i != a->items_.end() && i->first < j->first)) {
                both->items_.push_back(*i++);
            } else if (i == a->items_.end() || j->first < i->first) {
                both->items_.push_back(*j++);
            } else {
                both->items_.push_back(i->second <= j->second ? *j : *i);
                ++i, ++j;
            }
        }
        return both;
    }

  private:
    using Item = std::pair<std::uint64_t, Moment>;
    static std::uint64_t key_of(Party party, std::uint64_t number) {
        return static_cast<std::uint64_t>(party) | number;
    }
    std::vector<Item> items_;  // by their keys
};

}  // namespace cuda_on_cpu
