#pragma once
// Elements whose value shows which rank, call and index they come from, and what a reduction over
// all ranks makes of them. All sums over up to nine ranks are exact in every type, in any order.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "02_kernels/reduction.hpp"

namespace ddp::test {

// How many different integers of type T are used: nine of the largest still add up exactly.
template <class T>
constexpr std::uint32_t different_values() {
    constexpr int digits = std::is_same_v<T, __half>          ? 11
                           : std::is_same_v<T, __nv_bfloat16> ? 8
                                                              : 24;
    return (1u << digits) / 9;
}

// Element `i` of `rank` before call `turn`: a hash of all three, around zero.
template <class T>
__host__ __device__ int number_of(int rank, int turn, std::size_t i) {
    std::uint32_t mixed = static_cast<std::uint32_t>(i) * 2'654'435'761u +
                          static_cast<std::uint32_t>(rank) * 40'503u +
                          static_cast<std::uint32_t>(turn) * 69'069u;
    mixed = (mixed ^ mixed >> 15) * 2'246'822'519u;
    mixed ^= mixed >> 13;
    constexpr std::uint32_t values = different_values<T>();
    return static_cast<int>(mixed % values) - static_cast<int>(values / 2);
}

// Converts to T. An integer type keeps the low bits.
template <class T>
__host__ __device__ T to_element(double exact) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<long long>(exact));
    else
        return static_cast<T>(static_cast<typename ArithmeticOf<T>::type>(exact));
}

// The elements `i` of the ranks first_rank, ..., first_rank + ranks - 1, reduced by `op`.
template <class T>
__host__ __device__ T reduced(int first_rank, int ranks, int turn, std::size_t i, ReduceOp op) {
    long long sum = 0;
    int least = std::numeric_limits<int>::max(), most = std::numeric_limits<int>::min();
    for (int r = first_rank; r < first_rank + ranks; r++) {
        const int number = number_of<T>(r, turn, i);
        sum += number;
        least = number < least ? number : least;
        most = number > most ? number : most;
    }
    if (op == ReduceOp::maximum)
        return to_element<T>(most);
    if (op == ReduceOp::minimum)
        return to_element<T>(least);
    if (op == ReduceOp::sum)
        return to_element<T>(static_cast<double>(sum));
    using Arithmetic = typename ArithmeticOf<T>::type;
    return static_cast<T>(static_cast<Arithmetic>(sum) / static_cast<Arithmetic>(ranks));
}

// Elements begin, ..., begin + count - 1 of `rank`.
template <class T>
std::vector<T> numbers_of(int rank, int turn, std::size_t begin, std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; i++)
        values[i] = to_element<T>(number_of<T>(rank, turn, begin + i));
    return values;
}

// The same elements of ranks 0, ..., ranks - 1, reduced by `op`.
template <class T>
std::vector<T> reduced_numbers(int ranks, int turn, std::size_t begin, std::size_t count,
                               ReduceOp op) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; i++)
        values[i] = reduced<T>(0, ranks, turn, begin + i, op);
    return values;
}

// Every ReduceOp.
inline constexpr ReduceOp all_ops[] = {ReduceOp::sum, ReduceOp::average, ReduceOp::maximum,
                                       ReduceOp::minimum};

}  // namespace ddp::test
