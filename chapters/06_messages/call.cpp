#include "06_messages/call.hpp"

#include <array>
#include <cstring>

namespace ddp {
namespace {

struct TypeFacts {
    ElementType type;
    const char* name;
    std::size_t bytes;
};
constexpr std::array type_facts{
    TypeFacts{ElementType::float32, "float", 4}, TypeFacts{ElementType::float64, "double", 8},
    TypeFacts{ElementType::float16, "half", 2},  TypeFacts{ElementType::bfloat16, "bfloat16", 2},
    TypeFacts{ElementType::int32, "int", 4},     TypeFacts{ElementType::uint8, "byte", 1},
};

const TypeFacts& facts_of(ElementType type) {
    return *std::ranges::find(type_facts, type, &TypeFacts::type);
}

// Returns where `arrays` arrays of a call, which begin at `data`, lie in the arena.
std::size_t offset_in(SharedArena& arena, const void* data, std::size_t arrays, const Call& call) {
    const auto* begin = static_cast<const std::byte*>(data);
    const std::byte* end = arena.data() + arena.bytes();
    const std::size_t bytes = call.bytes();
    const bool is_inside = begin >= arena.data() && begin <= end;
    if (bytes == 0 || arrays == 0)
        return is_inside ? static_cast<std::size_t>(begin - arena.data()) : 0;
    if (!is_inside || bytes > static_cast<std::size_t>(end - begin) / arrays)
        throw std::invalid_argument(to_string(call) +
                                    ": the data does not lie in this rank's arena; allocate it by "
                                    "allocate() of the same Peers or Communicator");
    return static_cast<std::size_t>(begin - arena.data());
}

}  // namespace

std::size_t bytes_of(ElementType type) {
    return facts_of(type).bytes;
}

std::string name_of(ElementType type) {
    return facts_of(type).name;
}

std::optional<ElementType> element_type_named(const std::string& name) {
    const auto known = std::ranges::find(type_facts, name, &TypeFacts::name);
    return known == type_facts.end() ? std::nullopt : std::optional(known->type);
}

std::string name_of(OperationKind kind) {
    static constexpr const char* names[] = {"send",       "receive",        "broadcast",  "reduce",
                                            "all_reduce", "reduce_scatter", "all_gather", "other"};
    return names[static_cast<std::size_t>(kind)];
}

std::string to_string(const Call& call) {
    std::string text = call.title();
    if (call.inputs + call.outputs > 0)
        text += " of " + std::to_string(call.count) + " " + name_of(call.type);
    const bool is_from =
        call.kind == OperationKind::receive || call.kind == OperationKind::broadcast;
    if (call.peer >= 0)
        text += (is_from ? " from rank " : " to rank ") + std::to_string(call.peer);
    if (call.name.text[0] != 0)
        text += std::string(" (\"") + call.name.text + "\")";
    return text;
}

// FNV-1a, by words of 64 bits.
std::uint64_t fingerprint_of(const Call& call) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&hash](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
    const auto add_text = [&add](const ShortText& text) {
        std::uint64_t words[sizeof text / sizeof(std::uint64_t)];
        std::memcpy(words, text.text, sizeof words);
        std::ranges::for_each(words, add);
    };
    add(call.count);
    add(static_cast<std::uint64_t>(call.peer));
    add(static_cast<std::uint64_t>(call.type));
    add(call.op ? 1 + static_cast<std::uint64_t>(*call.op) : 0);
    add_text(call.operation);
    add_text(call.name);
    return hash;
}

std::size_t input_offset(SharedArena& arena, const Call& call) {
    return offset_in(arena, call.input, call.inputs, call);
}

std::size_t output_offset(SharedArena& arena, const Call& call) {
    return offset_in(arena, call.output, call.outputs, call);
}

}  // namespace ddp
