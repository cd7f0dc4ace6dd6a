#pragma once
// The notes on each place in memory: who has touched it last, and when.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "clocks.hpp"

namespace cuda_on_cpu {

struct Access {
    static constexpr std::uint32_t nobody = ~0u;

    Moment when;
    std::uint32_t thread = nobody;  // of the launch, numbered through all its blocks
    std::uint32_t is_write : 1 = 0;
    std::uint32_t is_atomic : 1 = 0;
    std::uint32_t at : 30 = 0;  // in the program's code, from its beginning

    bool is_there() const { return thread != nobody; }
    bool collides_with(const Access& other) const {
        return is_there() && thread != other.thread && (is_write || other.is_write) &&
               !(is_atomic && other.is_atomic);
    }
};

// One to four bytes. It keeps the last write and the last read, and more where there is more: the
// last atomic write and read, and of what has come since the last write without an order, one
// access each by another lane of the warp, another warp of the block and another block. That is
// enough to find a race at a place, if not each pair of accesses that make it.
struct Cell {
    Access write, read;
    std::uint32_t more = 0;  // in the page's list, from 1; 0: none
};
enum class Also { atomic_write, atomic_read, lane, warp, block };

// Cells for a stretch of memory: of four bytes each, until somebody touches less.
class Page {
  public:
    static constexpr std::uintptr_t bytes = 1024;
    using More = std::array<Access, 5>;  // by Also

    Page() : cells_(bytes / 4) { count(sizeof *this + bytes / 4 * sizeof(Cell)); }
    ~Page() { bytes_in_use -= counted_; }
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;

    // The notes of all pages.
    static inline std::atomic<std::size_t> bytes_in_use{0};

    // Returns the accesses that `now` races with, or nullptr, and then keeps it. `is_before(then)`
    // says whether something puts `then` before `now`; `who(then)` is the place for an access of
    // its thread: lane, warp or block.
    template <class IsBefore, class Who>
    const Access* note(std::uintptr_t first, std::uintptr_t count, const Access& now,
                       IsBefore is_before, Who who);

    std::mutex mutex;  // of those whose blocks run at the same time

  private:
    template <class IsBefore>
    const Access* race_of(const Cell& cell, const Access& now, IsBefore is_before) const;
    template <class IsBefore, class Who>
    void keep(Cell& cell, const Access& now, IsBefore is_before, Who who);
    Access& also(Cell& cell, Also which);
    void divide();
    void count(std::size_t more_bytes) {
        counted_ += more_bytes;
        bytes_in_use += more_bytes;
    }

    std::uintptr_t cell_bytes_ = 4;
    std::vector<Cell> cells_;
    std::vector<More> more_;
    std::size_t counted_ = 0;
};

template <class IsBefore, class Who>
const Access* Page::note(std::uintptr_t first, std::uintptr_t count, const Access& now,
                         IsBefore is_before, Who who) {
    if (cell_bytes_ == 4 && (first | count) % 4 != 0)
        divide();
    for (std::uintptr_t i = first / cell_bytes_; i < (first + count) / cell_bytes_; i++) {
        if (const Access* race = race_of(cells_[i], now, is_before))
            return race;
        keep(cells_[i], now, is_before, who);
    }
    return nullptr;
}

template <class IsBefore>
const Access* Page::race_of(const Cell& cell, const Access& now, IsBefore is_before) const {
    const auto races = [&](const Access& then) {
        return then.collides_with(now) && !is_before(then);
    };
    if (races(cell.write))
        return &cell.write;
    if (races(cell.read))
        return &cell.read;
    if (cell.more != 0)
        for (const Access& then : more_[cell.more - 1])
            if (races(then))
                return &then;
    return nullptr;
}

// Nothing races with `now`. So whoever comes later and is ordered behind a write is ordered behind
// all that came before that write.
template <class IsBefore, class Who>
void Page::keep(Cell& cell, const Access& now, IsBefore is_before, Who who) {
    if (now.is_write && !now.is_atomic) {
        cell.write = now;
        cell.read = {};
        cell.more = 0;
        return;
    }
    Access& last = !now.is_atomic ? cell.read
                   : now.is_write ? also(cell, Also::atomic_write)
                                  : also(cell, Also::atomic_read);
    const Access displaced = std::exchange(last, now);
    if (displaced.is_there() && displaced.thread != now.thread && !is_before(displaced))
        also(cell, who(displaced)) = displaced;
}

inline Access& Page::also(Cell& cell, Also which) {
    if (cell.more == 0) {
        more_.emplace_back();
        count(sizeof(More));
        cell.more = static_cast<std::uint32_t>(more_.size());
    }
    return more_[cell.more - 1][static_cast<std::size_t>(which)];
}

inline void Page::divide() {
    std::vector<Cell> divided(bytes);
    std::vector<More> more;
    for (std::uintptr_t i = 0; i < bytes; i++) {
        divided[i] = cells_[i / 4];
        if (divided[i].more != 0) {
            more.push_back(more_[divided[i].more - 1]);
            divided[i].more = static_cast<std::uint32_t>(more.size());
        }
    }
    count((bytes - bytes / 4) * sizeof(Cell) + (more.size() - more_.size()) * sizeof(More));
    cell_bytes_ = 1;
    cells_.swap(divided);
    more_.swap(more);
}

// The pages of some memory. All launches together have room for `max_bytes`: what a launch touches
// beyond that is not kept, and so no race is found there.
class Shadow {
  public:
    static constexpr std::size_t max_bytes = std::size_t{512} << 20;

    // Returns the page of the address; nullptr if there is no room. Any thread.
    Page* page_of(std::uintptr_t address);

  private:
    struct Shard {
        std::mutex mutex;
        std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages;
    };
    std::array<Shard, 16> shards_;
};

}  // namespace cuda_on_cpu
