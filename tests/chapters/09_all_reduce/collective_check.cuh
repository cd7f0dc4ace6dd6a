#pragma once
// What all tests of all-reduces share: data that tells whose it is and where it belongs, and the
// check of what became of it. Data is made and checked by kernels on the stream of the all-reduce,
// so nothing but the stream's order keeps them apart.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "02_kernels/reduction.hpp"
#include "06_messages/peers.hpp"

namespace ddp::test {

// Any all-reduce.
template <class T>
using AllReduce = std::function<void(const T* input, T* output, std::size_t count, ReduceOp op,
                                     Stream& stream, const std::string& name)>;

// Integers whose sum over nine ranks is exact in every T, as are the sums on the way.
template <class T>
constexpr std::uint32_t different_values() {
    constexpr int digits = std::is_same_v<T, __half>          ? 11
                           : std::is_same_v<T, __nv_bfloat16> ? 8
                                                              : 24;
    return (1u << digits) / 9;
}

// Element `i` of what `rank` has in turn `turn`: another one for every rank, turn and index.
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

template <class T>
__host__ __device__ T to_element(double exact) {
    return static_cast<T>(static_cast<typename ArithmeticOf<T>::type>(exact));
}

// What number_of(0), number_of(1), ... become.
template <class T>
__host__ __device__ T reduced(int ranks, int turn, std::size_t i, ReduceOp op) {
    long long sum = 0;
    int least = std::numeric_limits<int>::max(), most = std::numeric_limits<int>::min();
    for (int r = 0; r < ranks; r++) {
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

template <class T>
__global__ void fill(T* data, std::size_t size, int rank, int turn) {
    for (std::size_t i : grid_range(size))
        data[i] = to_element<T>(number_of<T>(rank, turn, i));
}

// `count` elements from `shift` on are now reduced from inputs that began at `input_shift`; the
// others are as they were filled.
template <class T>
__global__ void count_wrong(const T* data, std::size_t size, std::size_t shift, std::size_t count,
                            std::size_t input_shift, int rank, int ranks, int filled, int turn,
                            ReduceOp op, int* wrong) {
    for (std::size_t i : grid_range(size)) {
        const bool is_result = i >= shift && i < shift + count;
        const T right = is_result ? reduced<T>(ranks, turn, i - shift + input_shift, op)
                                  : to_element<T>(number_of<T>(rank, filled, i));
        using Arithmetic = typename ArithmeticOf<T>::type;
        if (static_cast<Arithmetic>(data[i]) != static_cast<Arithmetic>(right))
            atomicAdd(wrong, 1);
    }
}

// One all-reduce of a test.
struct Turn {
    std::size_t count = 0;
    ReduceOp op = ReduceOp::sum;
    bool in_place = false;
    std::size_t input_shift = 0, output_shift = 0;  // in elements: not always aligned
};

// One rank's two arrays, which are filled, reduced and checked again and again.
template <class T>
class CollectiveCheck {
  public:
    static constexpr std::size_t most_shift = 8;

    // For up to `most` elements, in the memory of `memory` (Peers or Communicator).
    template <class Memory>
    CollectiveCheck(Memory& memory, std::size_t most)
        : rank_(memory.rank().rank()),
          ranks_(memory.rank().world_size()),
          input_(memory.template allocate<T>(most + 2 * most_shift)),
          output_(memory.template allocate<T>(most + 2 * most_shift)),
          wrong_(memory.template allocate<int>(1)) {
        wrong_.copy_from(std::vector<int>(1));
    }

    void all_reduce(const AllReduce<T>& run, const Turn& turn, Stream& stream) {
        const std::size_t size = turn.count + 2 * most_shift;
        const int filled = 3 * ++turns_, other = filled + 1;
        T* output =
            turn.in_place ? input_.data() + turn.input_shift : output_.data() + turn.output_shift;
        launch(stream, grid_for(size), fill<T>, input_.data(), size, rank_, filled);
        launch(stream, grid_for(size), fill<T>, output_.data(), size, rank_, other);
        run(input_.data() + turn.input_shift, output, turn.count, turn.op, stream, "data");
        check(input_, turn.input_shift, turn.in_place ? turn.count : 0, filled, turn, stream);
        check(output_, turn.output_shift, turn.in_place ? 0 : turn.count, other, turn, stream);
    }
    // Elements, after the streams are synchronised.
    int wrong() const { return wrong_.to_host()[0]; }
    int turns() const { return turns_; }

  private:
    void check(ArenaBuffer<T>& data, std::size_t shift, std::size_t count, int filled,
               const Turn& turn, Stream& stream) {
        const std::size_t size = turn.count + 2 * most_shift;
        launch(stream, grid_for(size), count_wrong<T>, data.data(), size, shift, count,
               turn.input_shift, rank_, ranks_, filled, 3 * turns_, turn.op, wrong_.data());
    }

    const int rank_, ranks_;
    ArenaBuffer<T> input_, output_;
    ArenaBuffer<int> wrong_;
    int turns_ = 0;
};

// Turns that differ in everything, the same on every rank.
class Dice {
  public:
    explicit Dice(std::uint32_t seed) : state_(seed) {}
    std::uint32_t roll(std::uint32_t sides) {
        state_ = state_ * 1'664'525u + 1'013'904'223u;
        return (state_ >> 16) % sides;
    }
    Turn turn(std::size_t count) {
        Turn turn{count, static_cast<ReduceOp>(roll(4)), roll(2) == 1};
        if (roll(2) == 1)
            turn.input_shift = roll(CollectiveCheck<int>::most_shift);
        if (roll(2) == 1)
            turn.output_shift = roll(CollectiveCheck<int>::most_shift);
        return turn;
    }

  private:
    std::uint32_t state_;
};

inline const std::vector<ReduceOp>& all_ops() {
    static const std::vector<ReduceOp> ops{ReduceOp::sum, ReduceOp::average, ReduceOp::maximum,
                                           ReduceOp::minimum};
    return ops;
}

}  // namespace ddp::test
