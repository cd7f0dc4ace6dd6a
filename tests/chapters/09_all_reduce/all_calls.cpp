#include "tests/chapters/09_all_reduce/all_calls.hpp"

#include <algorithm>
#include <cstring>

#include "09_all_reduce/all_reduce.hpp"

namespace ddp::test {
namespace {

template <class T>
using Arithmetic = typename ArithmeticOf<T>::type;

// Returns element `i` of rank `rank`. Sevenths are exact in no type; integers below 17 are exact in
// all types.
template <class T>
T value_of(int rank, std::size_t i, bool is_exact) {
    const std::size_t mixed = (i * 2'654'435'761u + static_cast<std::size_t>(rank) * 40'503u) >> 4;
    const auto number = static_cast<Arithmetic<T>>(static_cast<int>(mixed % 1999) - 999);
    return is_exact ? static_cast<T>(static_cast<Arithmetic<T>>((mixed ^ i) % 17))
                    : static_cast<T>(number / static_cast<Arithmetic<T>>(7));
}

template <class T>
T combined(ReduceOp op, T a, T b) {
    const auto x = static_cast<Arithmetic<T>>(a), y = static_cast<Arithmetic<T>>(b);
    if (op == ReduceOp::maximum)
        return x > y ? a : b;
    if (op == ReduceOp::minimum)
        return x < y ? a : b;
    return static_cast<T>(x + y);
}

// Returns the reduction of term(1), term(2), ..., term(terms), in this order.
template <class Term>
auto reduced_in_order(ReduceOp op, int terms, const Term& term) {
    auto sum = term(1);
    for (int j = 2; j <= terms; j++)
        sum = combined(op, sum, term(j));
    return sum;
}

// Returns the reduction of the elements `i` of all ranks in the order that ends at position `last`
// of the ring: first `local` neighbours, then these sums.
template <class T>
T reduced(ReduceOp op, const std::vector<int>& ring, int local, int last, std::size_t i,
          bool is_exact) {
    const int ranks = static_cast<int>(ring.size()), nodes = ranks / local;
    const T sum = reduced_in_order(op, nodes, [&](int h) {
        const int first = (last / local + h) % nodes * local;
        return reduced_in_order(op, local, [&](int l) {
            const int position = first + (last % local + l) % local;
            return value_of<T>(ring[static_cast<std::size_t>(position)], i, is_exact);
        });
    });
    if (op != ReduceOp::average)
        return sum;
    return static_cast<T>(static_cast<Arithmetic<T>>(sum) / static_cast<Arithmetic<T>>(ranks));
}

std::string hash_of(const std::string& bytes) {
    std::uint64_t hash = 14'695'981'039'346'656'037u;  // FNV-1a
    for (const char byte : bytes)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 1'099'511'628'211u;
    return std::to_string(hash);
}

template <class T>
class Calls {
  public:
    Calls(Communicator& communicator, const std::vector<std::size_t>& counts,
          const OrderOfSums& order)
        : communicator_(communicator),
          counts_(counts),
          order_(order),
          me_(communicator.index()),
          ranks_(communicator.world_size()),
          all_(static_cast<std::size_t>(ranks_)) {}

    std::vector<CallResult> make() {
        if constexpr (!std::is_same_v<T, unsigned char>)
            for (const ReduceOp op :
                 {ReduceOp::sum, ReduceOp::average, ReduceOp::maximum, ReduceOp::minimum})
                reduce_all(op);
        broadcast();
        all_gather();
        to_the_next();
        return std::move(results_);
    }

  private:
    void reduce_all(ReduceOp op) {
        begin("all_reduce " + ddp::name_of(op));
        for (const std::size_t count : counts_) {
            allocate(count);
            for (const bool in_place : {false, true}) {
                set(count, [&](std::size_t i) { return value_of<T>(me_, i, order_.is_any); });
                communicator_.all_reduce(input_.data(), to(in_place, 0), count, op, stream_, "x");
                const std::size_t chunk = chunk_of(count, all_, 0, sizeof(T)).size;
                expect(in_place, 0, count, [&](std::size_t i) {
                    return reduced<T>(op, order_.ring, order_.local, static_cast<int>(i / chunk), i,
                                      order_.is_any);
                });
            }
        }
        begin("reduce_scatter " + ddp::name_of(op));
        for (const std::size_t count : counts_) {
            allocate(count);
            for (const bool in_place : {false, true}) {
                const std::size_t mine = static_cast<std::size_t>(me_) * count;
                set(all_ * count,
                    [&](std::size_t i) { return value_of<T>(me_, i, order_.is_any); });
                communicator_.reduce_scatter(input_.data(), to(in_place, mine), count, op, stream_);
                expect(in_place, mine, count,
                       [&](std::size_t i) { return ring_sum(op, me_, mine + i, order_.is_any); });
            }
        }
        begin("reduce " + ddp::name_of(op));
        for (const std::size_t count : counts_) {
            allocate(count);
            for (int root = 0; root < ranks_; root++) {
                const bool in_place = root % 2 == 1;
                set(count, [&](std::size_t i) { return value_of<T>(me_, i + 1, true); });
                communicator_.reduce(input_.data(), to(in_place, 0), count, op, root, stream_, "r");
                if (me_ == root)
                    expect(in_place, 0, count,
                           [&](std::size_t i) { return ring_sum(op, root, i + 1, true); });
            }
        }
    }

    void broadcast() {
        begin("broadcast");
        for (const std::size_t count : counts_) {
            allocate(count);
            for (int root = 0; root < ranks_; root++) {
                set(count, [&](std::size_t i) { return value_of<T>(me_, i, false); });
                communicator_.broadcast(input_.data(), count, root, stream_);
                expect(true, 0, count, [&](std::size_t i) { return value_of<T>(root, i, false); });
            }
        }
    }

    void all_gather() {
        begin("all_gather");
        for (const std::size_t count : counts_) {
            allocate(count);
            for (const bool in_place : {false, true}) {
                const std::size_t mine = in_place ? static_cast<std::size_t>(me_) * count : 0;
                set(mine + count, [&](std::size_t i) {
                    return i < mine ? T() : value_of<T>(me_, i - mine, false);
                });
                communicator_.all_gather(input_.data() + mine, to(in_place, 0), count, stream_);
                expect(in_place, 0, all_ * count, [&](std::size_t i) {
                    return value_of<T>(static_cast<int>(i / count), i % count, false);
                });
            }
        }
    }

    // Sends from every rank to the next one, then to the one after that, and so on.
    void to_the_next() {
        begin("send and receive");
        for (int distance = 1; distance < ranks_; distance++)
            for (const std::size_t count : counts_) {
                allocate(count);
                for (int from = 0; from < ranks_; from++) {
                    const int target = (from + distance) % ranks_;
                    set(count, [&](std::size_t i) { return value_of<T>(me_, i, false); });
                    if (me_ == from)
                        communicator_.send(input_.data(), count, target, stream_, "s");
                    if (me_ != target)
                        continue;
                    communicator_.receive(output_.data(), count, from, stream_, "s");
                    expect(false, 0, count,
                           [&](std::size_t i) { return value_of<T>(from, i, false); });
                }
            }
        communicator_.synchronize(stream_);
    }

    // The sum in the order that ends at the rank of index `owner`.
    T ring_sum(ReduceOp op, int owner, std::size_t i, bool is_exact) const {
        const auto position = std::ranges::find(order_.ring, owner) - order_.ring.begin();
        return reduced<T>(op, order_.ring, 1, static_cast<int>(position), i, is_exact);
    }
    void begin(const std::string& call) {
        results_.push_back({call + " " + ddp::name_of(element_type<T>()), 0, hash_of("")});
    }
    T* to(bool in_place, std::size_t offset) {
        return in_place ? input_.data() + offset : output_.data();
    }
    // An input and an output of `count` elements for each rank, and no more: copies take time.
    void allocate(std::size_t count) {
        communicator_.synchronize(stream_);
        input_ = {};
        output_ = {};
        input_ = communicator_.allocate<T>(all_ * count);
        output_ = communicator_.allocate<T>(all_ * count);
    }
    template <class Value>
    void set(std::size_t count, const Value& value) {
        communicator_.synchronize(stream_);
        given_.assign(input_.size(), T());
        for (std::size_t i = 0; i < count; i++)
            given_[i] = value(i);
        input_.copy_from(given_);
        output_.copy_from(std::vector<T>(output_.size()));
    }
    template <class Right>
    void expect(bool in_place, std::size_t offset, std::size_t count, const Right& right) {
        communicator_.synchronize(stream_);
        const std::vector<T> values = (in_place ? input_ : output_).to_host_now();
        if (!in_place)  // a call only reads its input
            results_.back().wrong += is_changed(input_.to_host_now());
        const T* result = values.data() + (in_place ? offset : 0);
        for (std::size_t i = 0; i < count; i++) {
            const T expected = right(i);
            results_.back().wrong += std::memcmp(&result[i], &expected, sizeof(T)) != 0;
        }
        results_.back().bits =
            hash_of(results_.back().bits +
                    std::string(reinterpret_cast<const char*>(result), count * sizeof(T)));
    }

    bool is_changed(const std::vector<T>& input) const {
        return std::memcmp(input.data(), given_.data(), input.size() * sizeof(T)) != 0;
    }

    Communicator& communicator_;
    const std::vector<std::size_t> counts_;
    const OrderOfSums order_;
    const int me_, ranks_;
    const std::size_t all_;
    Stream stream_;
    ArenaBuffer<T> input_, output_;
    std::vector<T> given_;  // the input
    std::vector<CallResult> results_;
};

template <class... Types>
void make_calls_of(Communicator& communicator, const std::vector<std::size_t>& counts,
                   const OrderOfSums& order, std::vector<CallResult>& all) {
    const auto add = [&]<class T>(T) {
        const std::vector<CallResult> results = Calls<T>(communicator, counts, order).make();
        all.insert(all.end(), results.begin(), results.end());
    };
    (add(Types()), ...);
}

}  // namespace

std::size_t arena_bytes_for(int ranks, const std::vector<std::size_t>& counts, std::size_t large) {
    const std::size_t most = std::ranges::max(counts);
    return 2 * static_cast<std::size_t>(ranks) *
               std::max(most * sizeof(double), large * sizeof(float)) +
           (1 << 16);
}

OrderOfSums order_on_one_node(int ranks) {
    OrderOfSums order;
    for (int r = 0; r < ranks; r++)
        order.ring.push_back(r);
    return order;
}

OrderOfSums any_order(int ranks) {
    OrderOfSums order = order_on_one_node(ranks);
    order.is_any = true;
    return order;
}

std::vector<CallResult> make_all_calls(Communicator& communicator,
                                       const std::vector<std::size_t>& counts, std::size_t large,
                                       const OrderOfSums& order) {
    std::vector<CallResult> all;
    make_calls_of<float, double, int, __half, __nv_bfloat16, unsigned char>(communicator, counts,
                                                                            order, all);
    make_calls_of<float>(communicator, {large}, order, all);
    return all;
}

}  // namespace ddp::test
