#pragma once
// The value of two elements when they are reduced to one, for every type that the book reduces:
// float, double, int, __half and __nv_bfloat16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <string>

#include "common/gpu/gpu.hpp"

namespace ddp {

// Average is the sum, divided by the number of ranks once at the end.
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

// The type in which T is computed. The short types are rounded back after every step, as NCCL does.
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

// One step. The maximum or minimum of anything and NaN is NaN, whichever comes first: a gradient
// that has gone wrong on one rank must not look right on all.
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

// After the last step, where `ranks` elements have become one. Integers lose their fraction.
template <ReduceOp op, class T>
__device__ T finish(T reduced, int ranks) {
    using Arithmetic = typename ArithmeticOf<T>::type;
    if constexpr (op == ReduceOp::average)
        return static_cast<T>(static_cast<Arithmetic>(reduced) / static_cast<Arithmetic>(ranks));
    else
        return reduced;
}

// Calls work.template operator()<op>() for an `op` that is known when the kernel runs: one kernel
// for all of them, with a loop for each.
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
