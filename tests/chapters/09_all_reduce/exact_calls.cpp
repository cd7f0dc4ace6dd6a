#include "tests/chapters/09_all_reduce/exact_calls.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "10_nodes/make_communicator.hpp"
#include "tests/chapters/09_all_reduce/late_kernel.hpp"
#include "tests/chapters/support/collective_values.hpp"

namespace ddp::test {
namespace {

// Two sizes, in bytes: strict mode handles a small arena faster.
constexpr std::size_t small_arena = 8 << 20, large_arena = 24 << 20;

// All calls with `count` elements of T. wrong() returns how many elements of their results are
// wrong.
template <class T>
class Calls {
  public:
    Calls(Communicator& communicator, Stream& stream, std::size_t count)
        : communicator_(communicator),
          stream_(stream),
          count_(count),
          me_(communicator.rank().rank()),
          ranks_(communicator.world_size()),
          all_(static_cast<std::size_t>(ranks_) * count) {}

    void all_reduce(ReduceOp op) {
        for (const bool in_place : {false, true}) {
            turn_++;
            ArenaBuffer<T> input = own(count_), output = own(count_);
            T* to = in_place ? input.data() : output.data();
            communicator_.all_reduce(input.data(), to, count_, op, stream_, "sum me");
            expect(in_place ? input : output, reduced_numbers<T>(ranks_, turn_, 0, count_, op));
            if (!in_place)
                expect(input, numbers_of<T>(me_, turn_, 0, count_));
        }
    }

    void reduce(ReduceOp op, int root) {
        for (const bool in_place : {false, true}) {
            turn_++;
            ArenaBuffer<T> input = own(count_), output = own(count_);
            T* to = in_place ? input.data() : output.data();
            communicator_.reduce(input.data(), to, count_, op, root, stream_);
            expect(in_place ? input : output, me_ == root
                                                  ? reduced_numbers<T>(ranks_, turn_, 0, count_, op)
                                                  : numbers_of<T>(me_, turn_, 0, count_));
            if (!in_place)
                expect(input, numbers_of<T>(me_, turn_, 0, count_));
        }
    }

    void reduce_scatter(ReduceOp op) {
        turn_++;
        const std::vector<T> sums = reduced_numbers<T>(ranks_, turn_, 0, all_, op);
        const auto mine = sums.begin() + static_cast<std::ptrdiff_t>(begin());
        const std::vector<T> expected(mine, mine + static_cast<std::ptrdiff_t>(count_));
        ArenaBuffer<T> input = own(all_), output = own(count_);
        communicator_.reduce_scatter(input.data(), output.data(), count_, op, stream_);
        expect(output, expected);
        expect(input, numbers_of<T>(me_, turn_, 0, all_));
        communicator_.reduce_scatter(input.data(), input.data() + begin(), count_, op, stream_);
        std::vector<T> after = numbers_of<T>(me_, turn_, 0, all_);
        std::copy(expected.begin(), expected.end(),
                  after.begin() + static_cast<std::ptrdiff_t>(begin()));
        expect(input, after);
    }

    void all_gather() {
        turn_++;
        std::vector<T> expected;
        for (int r = 0; r < ranks_; r++)
            for (const T value : numbers_of<T>(r, turn_, 0, count_))
                expected.push_back(value);
        ArenaBuffer<T> input = own(count_), output = own(all_);
        communicator_.all_gather(input.data(), output.data(), count_, stream_);
        expect(output, expected);
        expect(input, numbers_of<T>(me_, turn_, 0, count_));
        ArenaBuffer<T> both = communicator_.allocate<T>(all_);
        std::vector<T> before(all_, T{});
        std::copy(expected.begin() + static_cast<std::ptrdiff_t>(begin()),
                  expected.begin() + static_cast<std::ptrdiff_t>(begin() + count_),
                  before.begin() + static_cast<std::ptrdiff_t>(begin()));
        both.copy_from(before);
        communicator_.all_gather(both.data() + begin(), both.data(), count_, stream_);
        expect(both, expected);
    }

    void broadcast(int root) {
        turn_++;
        ArenaBuffer<T> data = own(count_);
        communicator_.broadcast(data.data(), count_, root, stream_);
        expect(data, numbers_of<T>(root, turn_, 0, count_));
    }

    // Each rank sends to the next one round the ring; even ranks send first.
    void messages() {
        if (ranks_ == 1)
            return;
        turn_++;
        ArenaBuffer<T> data = own(count_), received = own(count_);
        const int next = (me_ + 1) % ranks_, last = (me_ + ranks_ - 1) % ranks_;
        const auto send = [&] { communicator_.send(data.data(), count_, next, stream_); };
        const auto receive = [&] { communicator_.receive(received.data(), count_, last, stream_); };
        // With an odd number of ranks the last one and its right neighbour are both even: it
        // receives first.
        if (me_ % 2 == 0 && me_ != ranks_ - 1) {
            send();
            receive();
        } else {
            receive();
            send();
        }
        expect(received, numbers_of<T>(last, turn_, 0, count_));
    }

    int wrong() const { return wrong_; }

  private:
    std::size_t begin() const { return static_cast<std::size_t>(me_) * count_; }
    ArenaBuffer<T> own(std::size_t count) {
        ArenaBuffer<T> buffer = communicator_.allocate<T>(count);
        buffer.copy_from(numbers_of<T>(me_, turn_, 0, count));
        return buffer;
    }
    void expect(const ArenaBuffer<T>& actual, const std::vector<T>& expected) {
        communicator_.synchronize(stream_);
        const std::vector<T> values = actual.to_host_now();
        for (std::size_t i = 0; i < expected.size(); i++)
            wrong_ += static_cast<float>(values[i]) != static_cast<float>(expected[i]);
    }

    Communicator& communicator_;
    Stream& stream_;
    const std::size_t count_;
    const int me_, ranks_;
    const std::size_t all_;
    int turn_ = 0, wrong_ = 0;
};

}  // namespace

template <class T>
int wrong_of_type(Communicator& communicator, Stream& stream, std::size_t count) {
    Calls<T> calls(communicator, stream, count);
    if constexpr (!std::is_same_v<T, unsigned char>)
        for (const ReduceOp op : all_ops) {
            calls.all_reduce(op);
            calls.reduce_scatter(op);
            for (int root = 0; root < communicator.world_size(); root++)
                calls.reduce(op, root);
        }
    calls.all_gather();
    calls.messages();
    for (int root = 0; root < communicator.world_size(); root++)
        calls.broadcast(root);
    return calls.wrong();
}

template int wrong_of_type<float>(Communicator&, Stream&, std::size_t);
template int wrong_of_type<double>(Communicator&, Stream&, std::size_t);
template int wrong_of_type<__half>(Communicator&, Stream&, std::size_t);
template int wrong_of_type<__nv_bfloat16>(Communicator&, Stream&, std::size_t);
template int wrong_of_type<int>(Communicator&, Stream&, std::size_t);
template int wrong_of_type<unsigned char>(Communicator&, Stream&, std::size_t);

namespace {

int wrong_of_count(Communicator& communicator, Stream& stream, std::size_t count) {
    return wrong_of_type<float>(communicator, stream, count) +
           wrong_of_type<double>(communicator, stream, count) +
           wrong_of_type<__half>(communicator, stream, count) +
           wrong_of_type<__nv_bfloat16>(communicator, stream, count) +
           wrong_of_type<int>(communicator, stream, count) +
           wrong_of_type<unsigned char>(communicator, stream, count);
}

// A NaN on one rank reaches every rank, whatever the other ranks have.
int wrong_of_nan(Communicator& communicator, Stream& stream) {
    const int ranks = communicator.world_size();
    std::vector<float> values = numbers_of<float>(communicator.rank().rank(), 0, 0, 100);
    if (communicator.rank().rank() == ranks - 1)
        values[42] = std::numeric_limits<float>::quiet_NaN();
    int wrong = 0;
    for (const ReduceOp op : all_ops) {
        ArenaBuffer<float> data = communicator.allocate<float>(values.size());
        data.copy_from(values);
        communicator.all_reduce(data.data(), data.data(), values.size(), op, stream);
        communicator.synchronize(stream);
        const std::vector<float> result = data.to_host_now();
        for (std::size_t i = 0; i < values.size(); i++)
            wrong += std::isnan(result[i]) != (i == 42);
    }
    return wrong;
}

}  // namespace

int wrong_of_all_calls(Rank& rank, const std::string& kind, bool quick) {
    const auto ranks = static_cast<std::size_t>(rank.world_size());
    Stream stream;
    const auto communicator = make_communicator(kind, rank, small_arena);
    int wrong = communicator->kind() != kind;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, ranks - 1, ranks, ranks + 1,
                                    std::size_t{127}, std::size_t{10007}})
        if (!quick || count == ranks + 1)
            wrong += wrong_of_count(*communicator, stream, count);
    return wrong + wrong_of_nan(*communicator, stream);
}

int wrong_of_large_calls(Rank& rank, const std::string& kind) {
    const auto communicator = make_communicator(kind, rank, large_arena);
    Stream stream;
    Calls<float> whole(*communicator, stream, 1'200'011), chunks(*communicator, stream, 400'003);
    whole.all_reduce(ReduceOp::sum);
    whole.broadcast(rank.world_size() - 1);
    whole.reduce(ReduceOp::maximum, 0);
    whole.messages();
    chunks.reduce_scatter(ReduceOp::average);
    chunks.all_gather();
    return whole.wrong() + chunks.wrong();
}

int wrong_of_order(Rank& rank, const std::string& kind) {
    const std::unique_ptr<Communicator> communicator = make_communicator(kind, rank, 16 << 20);
    Stream stream, other;
    constexpr std::size_t count = 600'000;
    ArenaBuffer<float> data = communicator->allocate<float>(count);
    data.copy_from(numbers_of<float>(rank.rank(), 0, 0, count));
    add_late(data.data(), count, 1, stream);
    communicator->all_reduce(data.data(), data.data(), count, ReduceOp::sum, stream);
    add_late(data.data(), count, 100, stream);
    // On another stream, but after all of that.
    Event event;
    event.record(stream);
    other.wait(event);
    communicator->all_reduce(data.data(), data.data(), count, ReduceOp::maximum, other);
    communicator->synchronize(other);
    const std::vector<float> sums =
        reduced_numbers<float>(rank.world_size(), 0, 0, count, ReduceOp::sum);
    const std::vector<float> values = data.to_host_now();
    int wrong = 0;
    for (std::size_t i = 0; i < count; i++)
        wrong += values[i] != sums[i] + static_cast<float>(rank.world_size()) + 100;
    return wrong;
}

int wrong_of_two(Rank& rank, const std::string& kind) {
    std::vector<int> exchanged = Group::all(rank.job()).ranks();  // the last rank keeps its index
    std::swap(exchanged[0], exchanged[1]);
    const std::unique_ptr<Communicator> communicators[] = {
        make_communicator(kind, rank, small_arena),
        make_communicator(kind, rank, small_arena, {.group = Group(exchanged)})};
    Stream streams[2];
    ArenaBuffer<int> data[2];
    constexpr std::size_t count = 800'000;
    for (const std::size_t i : {0, 1}) {
        data[i] = communicators[i]->allocate<int>(count);
        data[i].copy_from(numbers_of<int>(rank.rank() + static_cast<int>(i), 0, 0, count));
    }
    for (int round = 0; round < 3; round++)
        for (const std::size_t turn : {0, 1}) {
            const std::size_t i = rank.rank() % 2 == 0 ? turn : 1 - turn;
            communicators[i]->all_reduce(data[i].data(), data[i].data(), count, ReduceOp::sum,
                                         streams[i]);
        }
    int wrong = 0;
    const int ranks = rank.world_size();
    for (const std::size_t i : {0, 1}) {
        communicators[i]->synchronize(streams[i]);
        const std::vector<int> values = data[i].to_host_now();
        for (std::size_t k = 0; k < count; k++) {
            int sum = 0;
            for (int r = 0; r < ranks; r++)
                sum += number_of<int>(r + static_cast<int>(i), 0, k);
            wrong += values[k] != sum * ranks * ranks;  // summed three times
        }
    }
    return wrong;
}

}  // namespace ddp::test
