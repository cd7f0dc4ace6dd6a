#pragma once
// The one harness for tests of collectives: fills a rank's arrays, makes a call, and counts wrong
// elements, for broadcast, reduce and all-reduce alike. Filling and counting are kernels on the
// stream of the call, and the host does not wait, so nothing but the stream's order keeps one turn
// from the next.
#include <functional>
#include <string>
#include <vector>

#include "06_messages/peers.hpp"
#include "tests/chapters/support/collective_values.hpp"

namespace ddp::test {

// Any all-reduce.
template <class T>
using AllReduce = std::function<void(const T* input, T* output, std::size_t count, ReduceOp op,
                                     Stream& stream, const std::string& name)>;

// One call of a test, the same on every rank.
struct Turn {
    std::size_t count = 0;
    ReduceOp op = ReduceOp::sum;
    bool in_place = false;
    std::size_t input_shift = 0, output_shift = 0;  // in elements: not always aligned
};

// The elements that a call writes: `count` of them from `begin` on, reduced over `ranks` ranks from
// `first_rank` on (a broadcast is a reduction over the root alone). Their inputs began at
// `input_begin`, and were filled for turn `turn`.
struct Expected {
    std::size_t begin = 0, count = 0, input_begin = 0;
    int first_rank = 0, ranks = 1, turn = 0;
    ReduceOp op = ReduceOp::sum;
};

template <class T>
__global__ void fill(T* data, std::size_t size, int rank, int turn) {
    for (std::size_t i : grid_range(size))
        data[i] = to_element<T>(number_of<T>(rank, turn, i));
}

// Adds to *wrong how many elements differ from `expected`, or, outside it, from what rank `rank`
// filled in for turn `filled`.
template <class T>
__global__ void count_wrong(const T* data, std::size_t size, Expected expected, int rank,
                            int filled, int* wrong) {
    for (std::size_t i : grid_range(size)) {
        const bool is_result = i >= expected.begin && i < expected.begin + expected.count;
        const T right = is_result
                            ? reduced<T>(expected.first_rank, expected.ranks, expected.turn,
                                         i - expected.begin + expected.input_begin, expected.op)
                            : to_element<T>(number_of<T>(rank, filled, i));
        using Arithmetic = typename ArithmeticOf<T>::type;
        if (static_cast<Arithmetic>(data[i]) != static_cast<Arithmetic>(right))
            atomicAdd(wrong, 1);
    }
}

// One rank's input and output array, used for turn after turn. All ranks take the same turns in the
// same order.
template <class T>
class CollectiveCheck {
  public:
    static constexpr std::size_t max_shift = 8;

    // For up to `most` elements, in the arena of `memory` (Peers or Communicator), which must
    // outlive this object.
    template <class Memory>
    CollectiveCheck(Memory& memory, std::size_t most)
        : rank_(memory.rank().rank()),
          ranks_(memory.rank().world_size()),
          input_(memory.template allocate<T>(most + 2 * max_shift)),
          output_(memory.template allocate<T>(most + 2 * max_shift)),
          wrong_(memory.template allocate<int>(1)) {
        wrong_.copy_from(std::vector<int>(1));
    }

    // Every rank's output becomes the reduction of all ranks' inputs.
    void all_reduce(const AllReduce<T>& call, const Turn& turn, Stream& stream) {
        begin(turn, stream);
        call(input(turn), output(turn), turn.count, turn.op, stream, "data");
        end(turn, reduction(turn), stream);
    }

    // The root's output becomes the reduction of all ranks' inputs. The other ranks have no output:
    // `call` gets nullptr there.
    void reduce(const std::function<void(const T* input, T* output)>& call, const Turn& turn,
                int root, Stream& stream) {
        begin(turn, stream);
        call(input(turn), rank_ == root ? output(turn) : nullptr);
        end(turn, rank_ == root ? reduction(turn) : Expected{}, stream);
    }

    // Every rank's elements, from turn.input_shift on, become the root's.
    void broadcast(const std::function<void(T* data)>& call, Turn turn, int root, Stream& stream) {
        turn.in_place = true;
        begin(turn, stream);
        call(input(turn));
        Expected expected = reduction(turn);
        expected.first_rank = root;
        expected.ranks = 1;
        end(turn, expected, stream);
    }

    // Returns the number of wrong elements of all turns; their streams must have been synchronised.
    int wrong() const { return wrong_.to_host_now()[0]; }

  private:
    T* input(const Turn& turn) { return input_.data() + turn.input_shift; }
    T* output(const Turn& turn) {
        return turn.in_place ? input(turn) : output_.data() + turn.output_shift;
    }
    // The two arrays are filled as for two different turns: what is taken from the wrong one shows.
    int filled(const ArenaBuffer<T>& data) const {
        return 2 * turns_ + (&data == &output_ ? 1 : 0);
    }
    // The elements that a turn may touch, and some on either side.
    static std::size_t size(const Turn& turn) { return turn.count + 2 * max_shift; }

    void begin(const Turn& turn, Stream& stream) {
        turns_++;
        for (ArenaBuffer<T>* data : {&input_, &output_})
            launch(stream, grid_for(size(turn)), fill<T>, data->data(), size(turn), rank_,
                   filled(*data));
    }
    Expected reduction(const Turn& turn) const {
        return {turn.in_place ? turn.input_shift : turn.output_shift,
                turn.count,
                turn.input_shift,
                0,
                ranks_,
                filled(input_),
                turn.op};
    }
    // `expected` is in the input if the turn is in place, and else in the output; the other array
    // must not have changed.
    void end(const Turn& turn, const Expected& expected, Stream& stream) {
        for (ArenaBuffer<T>* data : {&input_, &output_}) {
            const bool has_result = (data == &input_) == turn.in_place;
            launch(stream, grid_for(size(turn)), count_wrong<T>,
                   static_cast<const T*>(data->data()), size(turn),
                   has_result ? expected : Expected{}, rank_, filled(*data), wrong_.data());
        }
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
            turn.input_shift = roll(CollectiveCheck<int>::max_shift);
        if (roll(2) == 1)
            turn.output_shift = roll(CollectiveCheck<int>::max_shift);
        return turn;
    }

  private:
    std::uint32_t state_;
};

}  // namespace ddp::test
