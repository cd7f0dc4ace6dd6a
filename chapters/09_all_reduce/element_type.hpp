#pragma once
// Types of elements, for those who learn them when the program runs.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <optional>
#include <string>

namespace ddp {

// The elements that communicators know.
enum class ElementType { float32, float64, float16, bfloat16, int32, uint8 };

template <class T>
constexpr ElementType element_type();
template <>
constexpr ElementType element_type<float>() {
    return ElementType::float32;
}
template <>
constexpr ElementType element_type<double>() {
    return ElementType::float64;
}
template <>
constexpr ElementType element_type<__half>() {
    return ElementType::float16;
}
template <>
constexpr ElementType element_type<__nv_bfloat16>() {
    return ElementType::bfloat16;
}
template <>
constexpr ElementType element_type<int>() {
    return ElementType::int32;
}
template <>
constexpr ElementType element_type<unsigned char>() {
    return ElementType::uint8;
}

std::size_t bytes_of(ElementType type);
std::string name_of(ElementType type);  // "float32"
std::optional<ElementType> element_type_named(const std::string& name);

}  // namespace ddp
