#include "tools/explore/places.hpp"

#include <algorithm>
#include <cstddef>

#include "07_broadcast/collective.hpp"

namespace ddp {
namespace {

// A part of a control block, and what it says if it is a flag.
struct Part {
    std::string name;
    std::optional<FlagKind> flag = std::nullopt;
};

// Returns which element of `array` an address lies in; nothing if it lies elsewhere.
template <class T, std::size_t n>
std::optional<std::size_t> index_in(const T (&array)[n], const std::byte* address) {
    const auto* begin = reinterpret_cast<const std::byte*>(array);
    if (address < begin || address >= begin + sizeof array)
        return std::nullopt;
    return static_cast<std::size_t>(address - begin) / sizeof(T);
}

bool is_at(const std::uint64_t& value, const std::byte* address) {
    return reinterpret_cast<const std::byte*>(&value) == address;
}

std::string numbered(const std::string& array, std::size_t i) {
    return array + "[" + std::to_string(i) + "]";
}

Part part_of(const CollectiveState& state, const std::byte* address) {
    if (const auto rank = index_in(state.posted_calls, address)) {
        const PostedCall(&calls)[2] = state.posted_calls[*rank];
        if (is_at(calls[0].number, address) || is_at(calls[1].number, address))
            return {numbered("call", *rank), FlagKind::call};
        return {numbered("call", *rank) + ".place"};
    }
    if (const auto rank = index_in(state.posted, address))
        return {numbered("posted", *rank), FlagKind::post};
    if (const auto rank = index_in(state.acknowledged, address))
        return {numbered("acknowledged", *rank), FlagKind::acknowledgement};
    return {"record"};
}

Part part_of(const ControlBlock& control, const std::byte* address) {
    if (const auto rank = index_in(control.acknowledged, address))
        return {numbered("acknowledged", *rank), FlagKind::acknowledgement};
    if (const auto rank = index_in(control.from, address)) {
        const std::string channel = numbered("from", *rank);
        if (is_at(control.from[*rank].posted, address))
            return {channel + ".posted", FlagKind::post};
        return {channel + ".record"};
    }
    if (index_in(control.room, address))
        return part_of(*reinterpret_cast<const CollectiveState*>(control.room), address);
    return {"record"};
}

Part part_of(const FifoHead& fifo, const std::byte* address) {
    if (is_at(fifo.filled.value, address))
        return {"FIFO.filled", FlagKind::post};
    if (is_at(fifo.emptied.value, address))
        return {"FIFO.emptied", FlagKind::acknowledgement};
    if (is_at(fifo.wanted.value, address))
        return {"FIFO.wanted", FlagKind::call};
    return {"FIFO.record"};
}

bool has_fifo_at(const NamedArena& arena, const std::byte* address) {
    const auto* fifo = reinterpret_cast<const std::byte*>(arena.fifo);
    return fifo != nullptr && address >= fifo && address < fifo + sizeof(FifoHead);
}

const ControlBlock& control_of(const NamedArena& arena) {
    return *reinterpret_cast<const ControlBlock*>(arena.bytes.data());
}

}  // namespace

std::string name_of(FlagKind kind) {
    constexpr const char* names[] = {"call", "post", "acknowledgement"};
    return names[static_cast<int>(kind)];
}

std::string Places::name_of(const std::byte* address, std::size_t bytes) const {
    const NamedArena* arena = arena_of(address);
    if (arena == nullptr)
        return "the error report";
    const std::string owner = "rank " + std::to_string(arena->rank) + "'s ";
    if (has_fifo_at(*arena, address))
        return owner + part_of(*arena->fifo, address).name;
    for (const NamedArray& array : arena->arrays)
        if (address >= array.bytes.data() && address < array.bytes.data() + array.bytes.size()) {
            const std::size_t begin = static_cast<std::size_t>(address - array.bytes.data());
            const std::size_t first = begin / array.element,
                              end = std::min(begin + bytes, array.bytes.size()),
                              last = (end - 1) / array.element;
            return owner + array.name + "[" + std::to_string(first) +
                   (last > first ? ".." + std::to_string(last) : "") + "]";
        }
    return owner + part_of(control_of(*arena), address).name;
}

bool Places::is_record(const std::byte* address) const {
    const NamedArena* arena = arena_of(address);
    const auto* control = arena == nullptr ? nullptr : &control_of(*arena);
    return control != nullptr && address >= reinterpret_cast<const std::byte*>(&control->current) &&
           address < reinterpret_cast<const std::byte*>(&control->gave_up);
}

std::string Places::part_of_rank(const cuda_on_cpu::ExploredStep& step) const {
    const int stream = step.stream % streams_of_rank_;
    return (stream > 0 ? " on stream " + std::to_string(stream) : "") +
           (step.block > 0 ? " in block " + std::to_string(step.block) : "");
}

std::optional<FlagKind> Places::flag_at(const std::byte* address) const {
    const NamedArena* arena = arena_of(address);
    if (arena == nullptr)
        return std::nullopt;
    if (has_fifo_at(*arena, address))
        return part_of(*arena->fifo, address).flag;
    const bool is_in_control = address < arena->bytes.data() + sizeof(ControlBlock);
    return is_in_control ? part_of(control_of(*arena), address).flag : std::nullopt;
}

const NamedArena* Places::arena_of(const std::byte* address) const {
    const auto found = std::ranges::find_if(arenas_, [&](const NamedArena& arena) {
        return address >= arena.bytes.data() && address < arena.bytes.data() + arena.bytes.size();
    });
    return found == arenas_.end() ? nullptr : &*found;
}

}  // namespace ddp
