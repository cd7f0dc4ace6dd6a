// The Communicator over this book's own collectives: every call, on ranks that are threads.
#include "09_all_reduce/communicator.hpp"

#include <atomic>

#include "tests/chapters/09_all_reduce/collective_check.cuh"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

template <class T>
std::vector<T> numbers(int rank, int turn, std::size_t begin, std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; i++)
        values[i] = to_element<T>(number_of<T>(rank, turn, begin + i));
    return values;
}

template <class T>
std::vector<T> sums(int ranks, int turn, std::size_t begin, std::size_t count, ReduceOp op) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; i++)
        values[i] = reduced<T>(ranks, turn, begin + i, op);
    return values;
}

// One rank's turns with one communicator. Each fills its arrays, calls, and compares all of them.
template <class T>
class Caller {
  public:
    Caller(Communicator& communicator, std::size_t count)
        : communicator_(communicator),
          rank_(communicator.rank().rank()),
          ranks_(communicator.world_size()),
          all_(static_cast<std::size_t>(ranks_) * count),
          own_begin_(static_cast<std::size_t>(rank_) * count),
          count_(count),
          large_(communicator.allocate<T>(all_)),
          small_(communicator.allocate<T>(count)) {}

    int wrong() const { return wrong_; }

    void broadcast(int root) {
        begin();
        communicator_.broadcast(small_.data(), count_, root, stream_, "small");
        compare(small_, numbers<T>(root, turn_, 0, count_));
    }
    void reduce(ReduceOp op, int root) {
        begin();
        communicator_.reduce(small_.data(), large_.data(), count_, op, root, stream_, "sum");
        communicator_.synchronize(stream_);
        compare(small_, numbers<T>(rank_, turn_, 0, count_));
        if (rank_ == root)
            compare_part(large_, 0, sums<T>(ranks_, turn_, 0, count_, op));
    }
    void reduce_in_place(ReduceOp op, int root) {
        begin();
        communicator_.reduce(small_.data(), small_.data(), count_, op, root, stream_, "sum");
        if (rank_ == root)
            compare(small_, sums<T>(ranks_, turn_, 0, count_, op));
        else
            communicator_.synchronize(stream_);
    }
    void all_reduce(ReduceOp op) {
        begin();
        communicator_.all_reduce(small_.data(), small_.data(), count_, op, stream_, "sum");
        compare(small_, sums<T>(ranks_, turn_, 0, count_, op));
    }
    void reduce_scatter(ReduceOp op) {
        begin();
        communicator_.reduce_scatter(large_.data(), small_.data(), count_, op, stream_, "part");
        compare(small_, sums<T>(ranks_, turn_, own_begin_, count_, op));
        compare(large_, numbers<T>(rank_, turn_, 0, all_));
    }
    void reduce_scatter_in_place(ReduceOp op) {
        begin();
        T* own = large_.data() + own_begin_;
        communicator_.reduce_scatter(large_.data(), own, count_, op, stream_, "part");
        std::vector<T> expected = numbers<T>(rank_, turn_, 0, all_);
        std::ranges::copy(sums<T>(ranks_, turn_, own_begin_, count_, op),
                          expected.begin() + static_cast<std::ptrdiff_t>(own_begin_));
        compare(large_, expected);
    }
    void all_gather() {
        begin();
        communicator_.all_gather(small_.data(), large_.data(), count_, stream_, "all");
        compare(large_, gathered(0));
        compare(small_, numbers<T>(rank_, turn_, 0, count_));
    }
    void all_gather_in_place() {
        begin();
        communicator_.all_gather(large_.data() + own_begin_, large_.data(), count_, stream_, "all");
        compare(large_, gathered(count_));
    }
    // Round the ring; even ranks send first.
    void pass_on() {
        begin();
        const int right = (rank_ + 1) % ranks_, left = (rank_ + ranks_ - 1) % ranks_;
        Stream sending;
        communicator_.send(small_.data(), count_, right, sending, "round");
        communicator_.receive(large_.data(), count_, left, stream_, "round");
        communicator_.synchronize(sending);
        communicator_.synchronize(stream_);
        compare_part(large_, 0, numbers<T>(left, turn_, 0, count_));
    }

  private:
    void begin() {
        turn_++;
        large_.copy_from(numbers<T>(rank_, turn_, 0, all_));
        small_.copy_from(numbers<T>(rank_, turn_, 0, count_));
    }
    // What all have, each beginning `stride` later than the one before.
    std::vector<T> gathered(std::size_t stride) const {
        std::vector<T> all;
        for (int r = 0; r < ranks_; r++) {
            const auto part = numbers<T>(r, turn_, static_cast<std::size_t>(r) * stride, count_);
            all.insert(all.end(), part.begin(), part.end());
        }
        return all;
    }
    void compare(const ArenaBuffer<T>& actual, const std::vector<T>& expected) {
        communicator_.synchronize(stream_);
        compare_part(actual, 0, expected);
    }
    void compare_part(const ArenaBuffer<T>& actual, std::size_t begin,
                      const std::vector<T>& expected) {
        const std::vector<T> host = actual.to_host();
        for (std::size_t i = 0; i < expected.size(); i++)
            wrong_ += static_cast<double>(host[begin + i]) != static_cast<double>(expected[i]);
    }

    Communicator& communicator_;
    const int rank_, ranks_;
    const std::size_t all_, own_begin_, count_;
    ArenaBuffer<T> large_, small_;  // elements for each rank, and for one
    Stream stream_;
    int turn_ = 0, wrong_ = 0;
};

template <class T>
int wrong_in_all_calls(Communicator& communicator, std::size_t count) {
    Caller<T> caller(communicator, count);
    const int ranks = communicator.world_size();
    for (const ReduceOp op : all_ops()) {
        const int root = static_cast<int>(op) % ranks;
        caller.reduce(op, root);
        caller.reduce_in_place(op, ranks - 1 - root);
        caller.all_reduce(op);
        caller.reduce_scatter(op);
        caller.reduce_scatter_in_place(op);
    }
    for (int root = 0; root < ranks; root++)
        caller.broadcast(root);
    caller.all_gather();
    caller.all_gather_in_place();
    if (ranks > 1)
        caller.pass_on();
    return caller.wrong();
}

}  // namespace

TEST_CASE("every call of the Communicator, world sizes 1 to 9, every type", "[exhaustive]") {
    for (int ranks = 1; ranks <= 9; ranks++) {
        World world(thread_options(ranks));
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) {
            const auto own = make_communicator("native", rank, 8 << 20);
            wrong += own->kind() != "native" || own->world_size() != ranks;
            const auto n = static_cast<std::size_t>(ranks);
            for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n + 1, std::size_t{509},
                                            std::size_t{5003}})  // the last is no short one
                wrong += wrong_in_all_calls<float>(*own, count);
            wrong += wrong_in_all_calls<double>(*own, n - 1) + wrong_in_all_calls<int>(*own, 509) +
                     wrong_in_all_calls<__half>(*own, 509) +
                     wrong_in_all_calls<__nv_bfloat16>(*own, 509);
        });
        CAPTURE(ranks);
        REQUIRE(wrong == 0);
    }
}

TEST_CASE("bytes can be moved") {
    World world(thread_options(3));
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) {
        const auto own = make_communicator("native", rank, 1 << 20);
        Stream stream;
        const auto mine = static_cast<unsigned char>(rank.rank() + 5);
        ArenaBuffer<unsigned char> one = own->allocate<unsigned char>(33);
        ArenaBuffer<unsigned char> all = own->allocate<unsigned char>(99);
        one.copy_from(std::vector<unsigned char>(33, mine));
        own->all_gather(one.data(), all.data(), 33, stream);
        own->broadcast(one.data(), 33, 2, stream);
        own->synchronize(stream);
        wrong += one.to_host() != std::vector<unsigned char>(33, 7);
        const std::vector<unsigned char> gathered = all.to_host();
        for (std::size_t i = 0; i < 99; i++)
            wrong += gathered[i] != i / 33 + 5;
    });
    REQUIRE(wrong == 0);
}

namespace {

// What is said when rank 0 asks for this.
std::string refusal_of(const std::function<void(Communicator&, float*, Stream&)>& ask) {
    World world(thread_options(2));
    return failure_of(world, [&](Rank& rank) {
        const auto own = make_communicator("native", rank, 1 << 20);
        Stream stream;
        ArenaBuffer<float> data = own->allocate<float>(100);
        rank.barrier();
        if (rank.rank() == 0)
            ask(*own, data.data(), stream);
        rank.barrier();
    });
}

}  // namespace

TEST_CASE("requests to the Communicator that make no sense") {
    constexpr ReduceOp sum = ReduceOp::sum;
    const auto requires_text = [](const std::string& refusal, const std::string& text) {
        CAPTURE(refusal);
        REQUIRE(has(refusal, text));
    };
    for (const int wrong : {-1, 2}) {
        const std::string rank = "rank " + std::to_string(wrong) + ": the ranks are 0 to 1";
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.broadcast(d, 1, wrong, s); }),
            "broadcast from " + rank);
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.reduce(d, d, 1, sum, wrong, s); }),
            "reduce to " + rank);
        requires_text(refusal_of([&](auto& c, float* d, Stream& s) { c.send(d, 1, wrong, s); }),
                      "send to " + rank);
        requires_text(refusal_of([&](auto& c, float* d, Stream& s) { c.receive(d, 1, wrong, s); }),
                      "receive from " + rank);
    }
    const std::string not_ours = ": the data does not lie in this ";
    for (const std::size_t count : {std::size_t{100'000'000}, SIZE_MAX / 4 + 2, SIZE_MAX}) {
        CAPTURE(count);
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.all_reduce(d, d, count, sum, s); }),
            not_ours);
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.all_gather(d, d, count, s); }),
            not_ours);
        requires_text(refusal_of([&](auto& c, float* d, Stream& s) {
                          c.reduce_scatter(d, d, count, sum, s);
                      }),
                      not_ours);
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.reduce(d, d, count, sum, 0, s); }),
            not_ours);
        requires_text(
            refusal_of([&](auto& c, float* d, Stream& s) { c.broadcast(d, count, 0, s); }),
            not_ours);
    }
    // Whether it is short or long: a program must not come to depend on the algorithm.
    for (const std::size_t count : {10, 50'000}) {
        Buffer<float> elsewhere(count);
        requires_text(refusal_of([&](auto& c, float*, Stream& s) {
                          c.all_reduce(elsewhere.data(), elsewhere.data(), count, sum, s);
                      }),
                      not_ours);
    }
    requires_text(refusal_of([](auto& c, float* d, Stream& s) {
                      auto* bytes = reinterpret_cast<unsigned char*>(d);
                      c.all_reduce(bytes, bytes, 10, sum, s);
                  }),
                  "bytes can be sent and gathered, but not summed");
    requires_text(refusal_of([](Communicator& c, float*, Stream&) {
                      make_communicator("gloo", c.rank(), 100);
                  }),
                  "There is no communicator 'gloo'; there are native, mpi and nccl.");
}

}  // namespace ddp::test
