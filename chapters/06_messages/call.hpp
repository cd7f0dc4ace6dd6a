#pragma once
// A call of a communication operation: what the program asks for. The typed functions (Peers::send,
// ring_all_reduce, Communicator::all_reduce) describe a call once, as a Call. It goes unchanged to
// the function that launches the kernel, and with a number to the kernel and to other ranks, as an
// OperationRecord (control.hpp).
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "02_kernels/reduction.hpp"
#include "06_messages/shared_arena.hpp"

namespace ddp {

// The types of the elements that ranks exchange. uint8 stands for bytes of any meaning.
enum class ElementType { float32, float64, float16, bfloat16, int32, uint8 };

// Returns the ElementType of T, a type that the compiler knows.
template <class T>
constexpr ElementType element_type() {
    if constexpr (std::is_same_v<T, float>) {
        return ElementType::float32;
    } else if constexpr (std::is_same_v<T, double>) {
        return ElementType::float64;
    } else if constexpr (std::is_same_v<T, __half>) {
        return ElementType::float16;
    } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        return ElementType::bfloat16;
    } else if constexpr (std::is_same_v<T, int>) {
        return ElementType::int32;
    } else {
        static_assert(sizeof(T) == 1, "ranks exchange float, double, half, bfloat16, int or bytes");
        return ElementType::uint8;
    }
}

std::size_t bytes_of(ElementType type);
// Returns the name that records and messages give a type: "float", "double", "half", "bfloat16",
// "int" or "byte".
std::string name_of(ElementType type);
// Returns the type of that name; nothing if there is none.
std::optional<ElementType> element_type_named(const std::string& name);

// Calls work.template operator()<T>() with the T of `type`. Throws std::invalid_argument for bytes,
// which cannot be summed.
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

// The operations, by the ranks that take part and the direction in which the data moves.
enum class OperationKind : std::uint64_t {
    send,            // to rank `peer`
    receive,         // from rank `peer`
    broadcast,       // from rank `peer` to all ranks
    reduce,          // from all ranks to rank `peer`
    all_reduce,      // from all ranks to all ranks, and so are the next two
    reduce_scatter,  // each gets its part of the sum
    all_gather,      // each gets the parts of all
    other            // of an algorithm's own
};
// Returns the name that messages give it: "all_reduce".
std::string name_of(OperationKind kind);

// A text for messages, in memory that ranks share: the first 31 characters of it.
struct ShortText {
    char text[32] = "";

    ShortText() = default;
    ShortText(const std::string& from) { from.copy(text, sizeof text - 1); }
    ShortText(const char* from) : ShortText(std::string(from)) {}
};

struct Call {
    ShortText operation;  // "send", "all_reduce": the name that messages give it
    OperationKind kind = OperationKind::other;
    ElementType type = ElementType::float32;
    std::size_t count = 0;  // elements of an array
    // The arrays that lie at `input` and at `output`, one after the other: none, one, or one for
    // each rank.
    const void* input = nullptr;
    std::size_t inputs = 1;
    void* output = nullptr;
    std::size_t outputs = 1;
    ShortText name = {};  // that the program has given to the data
    int peer = -1;        // the other rank of a message, or the root: its number in the job
    std::optional<ReduceOp> op = std::nullopt;  // of an operation that sums

    // Returns the size of one array. A count that is too large for any memory gives the largest
    // size there is, which no arena has.
    std::size_t bytes() const {
        return std::min(count, SIZE_MAX / bytes_of(type)) * bytes_of(type);
    }
    // Returns the operation and what it computes: "all_reduce sum".
    std::string title() const { return operation.text + (op ? " " + name_of(*op) : std::string()); }
};

// Returns the words of messages for a call: "all_reduce sum of 1000 float ("weights")", "send of 3
// int to rank 1".
std::string to_string(const Call& call);

// Returns a number for all that ranks of a collective must call alike: two different calls will not
// have the same by chance.
std::uint64_t fingerprint_of(const Call& call);

// Return where a call's inputs or outputs begin in `arena`: bytes from its beginning. Throw
// std::invalid_argument, which names the call, if they do not lie in it; no data may be anywhere.
std::size_t input_offset(SharedArena& arena, const Call& call);
std::size_t output_offset(SharedArena& arena, const Call& call);

}  // namespace ddp
