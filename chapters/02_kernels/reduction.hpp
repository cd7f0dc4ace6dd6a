#pragma once
// The value that two elements are reduced to, for every type that the book reduces: float, double,
// int, __half and __nv_bfloat16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <string>

#include "common/gpu/gpu.hpp"

namespace ddp {

// The operations. An average is the sum, divided by the number of ranks once at the end.
enum class ReduceOp { sum, average, maximum, minimum };

// Returns the name that records and messages use.
inline std::string name_of(ReduceOp op) {
    switch (op) {
        case ReduceOp::average:
            return "average";
        case ReduceOp::maximum:
            return "maximum";
        case ReduceOp::minimum:
            return "minimum";
        default:
            return "sum";
    }
}

// The type in which T is computed. The short types are computed as float and rounded back after
// every step, as in NCCL.
template <class T>
struct ArithmeticOf {
    using type = T;
};
template <>
struct ArithmeticOf<__half> {
    using type = float;
};
template <>
struct ArithmeticOf<__nv_bfloat16> {
    using type = float;
};

// Returns a op b: one step of a reduction. The maximum or minimum of NaN and anything else is NaN,
// in either order, so that a NaN in one rank's gradient reaches all ranks instead of vanishing.
template <ReduceOp op, class T>
__device__ T combine(T a, T b) {
    using Arithmetic = typename ArithmeticOf<T>::type;
    const auto x = static_cast<Arithmetic>(a), y = static_cast<Arithmetic>(b);
    if constexpr (op == ReduceOp::maximum)
        return x > y || x != x ? a : b;
    else if constexpr (op == ReduceOp::minimum)
        return x < y || x != x ? a : b;
    else
        return static_cast<T>(x + y);
}

// Returns the result of reducing `ranks` elements, given the value after the last step: divides an
// average, and leaves the others as they are. Averages of integers lose their fraction.
template <ReduceOp op, class T>
__device__ T finish(T reduced, int ranks) {
    using Arithmetic = typename ArithmeticOf<T>::type;
    if constexpr (op == ReduceOp::average)
        return static_cast<T>(static_cast<Arithmetic>(reduced) / static_cast<Arithmetic>(ranks));
    else
        return reduced;
}

// Calls work.template operator()<op>() for an `op` that is known only when the kernel runs. So one
// kernel serves all operations, with a loop for each.
template <class Work>
__device__ void with_op(ReduceOp op, const Work& work) {
    switch (op) {
        case ReduceOp::sum:
            return work.template operator()<ReduceOp::sum>();
        case ReduceOp::average:
            return work.template operator()<ReduceOp::average>();
        case ReduceOp::maximum:
            return work.template operator()<ReduceOp::maximum>();
        case ReduceOp::minimum:
            return work.template operator()<ReduceOp::minimum>();
    }
}

}  // namespace ddp
