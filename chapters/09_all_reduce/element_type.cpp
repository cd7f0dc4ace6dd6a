#include "09_all_reduce/element_type.hpp"

#include <algorithm>
#include <array>

namespace ddp {
namespace {

struct Facts {
    ElementType type;
    const char* name;
    std::size_t bytes;
};
constexpr std::array type_count{
    Facts{ElementType::float32, "float32", 4}, Facts{ElementType::float64, "float64", 8},
    Facts{ElementType::float16, "float16", 2}, Facts{ElementType::bfloat16, "bfloat16", 2},
    Facts{ElementType::int32, "int32", 4},     Facts{ElementType::uint8, "uint8", 1},
};

const Facts& facts_of(ElementType type) {
    return *std::ranges::find(type_count, type, &Facts::type);
}

}  // namespace

std::size_t bytes_of(ElementType type) {
    return facts_of(type).bytes;
}

std::string name_of(ElementType type) {
    return facts_of(type).name;
}

std::optional<ElementType> element_type_named(const std::string& name) {
    const auto known = std::ranges::find(type_count, name, &Facts::name);
    return known == type_count.end() ? std::nullopt : std::optional(known->type);
}

}  // namespace ddp
