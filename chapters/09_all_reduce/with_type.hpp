#pragma once
// From a type that is known when the program runs to one that the compiler knows.
#include <stdexcept>

#include "09_all_reduce/element_type.hpp"

namespace ddp {

// Calls work.template operator()<T>() with the T of `type`, which can be summed. Throws
// std::invalid_argument for bytes.
template <class Work>
void with_type(ElementType type, const Work& work) {
    switch (type) {
        case ElementType::float32:
            return work.template operator()<float>();
        case ElementType::float64:
            return work.template operator()<double>();
        case ElementType::float16:
            return work.template operator()<__half>();
        case ElementType::bfloat16:
            return work.template operator()<__nv_bfloat16>();
        case ElementType::int32:
            return work.template operator()<int>();
        case ElementType::uint8:
            throw std::invalid_argument("bytes can be sent and gathered, but not summed");
    }
}

}  // namespace ddp
