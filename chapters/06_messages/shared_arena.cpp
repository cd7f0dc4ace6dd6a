#include "06_messages/shared_arena.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "common/report/units.hpp"

namespace ddp {
namespace {

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
    const auto place =
        std::ranges::find_if(free_, [&](const auto& part) { return part.second >= needed; });
    if (place == free_.end())
        throw std::runtime_error("the arena of " +
                                 format_bytes(static_cast<double>(memory_.size())) +
                                 " has no room for " + format_bytes(static_cast<double>(bytes)) +
                                 ": make the Peers with a larger arena");
    const auto [offset, room] = *place;
    free_.erase(place);
    if (room > needed)
        free_[offset + needed] = room - needed;
    taken_[offset] = needed;
    return offset;
}

void SharedArena::give_back(std::size_t offset) {
    std::lock_guard lock(mutex_);
    const auto taken = taken_.find(offset);
    auto part = free_.emplace(*taken).first;
    taken_.erase(taken);
    const auto next = std::next(part);
    if (next != free_.end() && part->first + part->second == next->first) {
        part->second += next->second;
        free_.erase(next);
    }
    if (part == free_.begin())
        return;
    const auto previous = std::prev(part);
    if (previous->first + previous->second == part->first) {
        previous->second += part->second;
        free_.erase(part);
    }
}

}  // namespace ddp
