#include "06_messages/shared_arena.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns the smallest multiple of the unit, but not 0, that has room for `bytes`.
std::size_t rounded_up(std::size_t bytes) {
    return std::max<std::size_t>(1, (bytes + SharedArena::unit - 1) / SharedArena::unit) *
           SharedArena::unit;
}

}  // namespace

SharedArena::SharedArena(std::size_t bytes)
    : memory_(rounded_up(bytes)), free_{{0, memory_.size()}} {}

std::size_t SharedArena::take(std::size_t bytes) {
    const std::size_t needed = rounded_up(bytes);
    std::lock_guard lock(mutex_);
    // First fit: the first gap that is large enough. What is left of it stays free.
    const auto gap =
        std::ranges::find_if(free_, [&](const auto& each) { return each.second >= needed; });
    if (gap == free_.end())
        throw std::runtime_error("the arena of " +
                                 format_bytes(static_cast<double>(memory_.size())) +
                                 " has no room for " + format_bytes(static_cast<double>(bytes)) +
                                 ": make the Peers with a larger arena");
    const auto [offset, room] = *gap;
    free_.erase(gap);
    if (room > needed)
        free_[offset + needed] = room - needed;
    reserved_[offset] = needed;
    return offset;
}

void SharedArena::give_back(std::size_t offset) {
    std::lock_guard lock(mutex_);
    const auto reserved = reserved_.find(offset);
    auto gap = free_.emplace(*reserved).first;
    reserved_.erase(reserved);
    // Merge the new gap with the one that follows it, and with the one before it.
    const auto next = std::next(gap);
    if (next != free_.end() && gap->first + gap->second == next->first) {
        gap->second += next->second;
        free_.erase(next);
    }
    if (gap == free_.begin())
        return;
    const auto previous = std::prev(gap);
    if (previous->first + previous->second == gap->first) {
        previous->second += gap->second;
        free_.erase(gap);
    }
}

}  // namespace ddp
