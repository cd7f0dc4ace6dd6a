#include "06_messages/call.hpp"

#include <array>

#include "06_messages/control.hpp"

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

std::string to_string(OperationKind kind, const std::string& title, std::size_t count,
                      const std::string& type, int peer, const std::string& name) {
    std::string text = title + " of " + std::to_string(count) + " " + type;
    const bool is_from = kind == OperationKind::receive || kind == OperationKind::broadcast;
    if (peer >= 0)
        text += (is_from ? " from rank " : " to rank ") + std::to_string(peer);
    if (!name.empty())
        text += " (\"" + name + "\")";
    return text;
}

std::string to_string(const Call& call) {
    constexpr std::size_t longest_name = sizeof OperationRecord::name - 1;
    return to_string(call.kind, call.title(), call.count, name_of(call.type), call.peer,
                     call.name.substr(0, longest_name));
}

std::size_t input_offset(SharedArena& arena, const Call& call) {
    return offset_in(arena, call.input, call.inputs, call);
}

std::size_t output_offset(SharedArena& arena, const Call& call) {
    return offset_in(arena, call.output, call.outputs, call);
}

}  // namespace ddp
