// The bits of sums that are rounded: the same on all ranks, and those of the documented order.
#include <cstring>
#include <map>
#include <mutex>

#include "09_all_reduce/support/algorithms.hpp"
#include "tests/chapters/09_all_reduce/mutants.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Returns values whose sum depends on the order.
template <class T>
std::vector<T> rounding_values(int rank, std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; i++)
        values[i] = to_element<T>(number_of<double>(rank, 1, i) * 1.7e-5);
    return values;
}

template <class T>
T next_sum(T a, T b) {
    using Arithmetic = typename ArithmeticOf<T>::type;
    return static_cast<T>(static_cast<Arithmetic>(a) + static_cast<Arithmetic>(b));
}

// Adds in the documented order: the sum of chunk c begins with rank c + 1.
template <class T>
std::vector<T> sum_round_the_ring(const std::vector<std::vector<T>>& inputs) {
    const std::size_t ranks = inputs.size(), count = inputs[0].size();
    std::vector<T> sums(count);
    for (std::size_t c = 0; c < ranks; c++) {
        const Chunk chunk = chunk_of(count, ranks, c, sizeof(T));
        for (std::size_t i = chunk.begin; i < chunk.begin + chunk.size; i++) {
            sums[i] = inputs[(c + 1) % ranks][i];
            for (std::size_t j = 1; j < ranks; j++)
                sums[i] = next_sum(sums[i], inputs[(c + 1 + j) % ranks][i]);
        }
    }
    return sums;
}

template <class T>
std::vector<T> sum_by_rank(const std::vector<std::vector<T>>& inputs) {
    std::vector<T> sums = inputs[0];
    for (std::size_t r = 1; r < inputs.size(); r++)
        for (std::size_t i = 0; i < sums.size(); i++)
            sums[i] = next_sum(sums[i], inputs[r][i]);
    return sums;
}

// Adds the arrays of four ranks in pairs.
template <class T>
std::vector<T> sum_of_pairs(const std::vector<std::vector<T>>& inputs) {
    std::vector<T> sums(inputs[0].size());
    for (std::size_t i = 0; i < sums.size(); i++)
        sums[i] =
            next_sum(next_sum(inputs[0][i], inputs[1][i]), next_sum(inputs[2][i], inputs[3][i]));
    return sums;
}

// Returns whether all elements have the same bits.
template <class T>
bool are_same(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
using Results = std::vector<std::vector<T>>;  // by rank

template <class T>
bool have_same_bits(const Results<T>& results) {
    return std::ranges::all_of(results, [&](const auto& r) { return are_same(r, results[0]); });
}

// Returns every rank's result of every algorithm, by the algorithm's name, and of "own order",
// which adds in another order on every rank.
template <class T>
std::map<std::string, Results<T>> results(int ranks, std::size_t count) {
    World world(thread_options(ranks));
    std::map<std::string, Results<T>> all;
    std::mutex mutex;
    world.run([&](Rank& rank) {
        Peers peers(rank, 8 << 20);
        Stream stream;
        ArenaBuffer<T> input = peers.allocate<T>(count), output = peers.allocate<T>(count);
        input.copy_from(rounding_values<T>(rank.rank(), count));
        std::vector<std::pair<std::string, AllReduce<T>>> algorithms;
        for (const AllReduceAlgorithm<T>& algorithm : all_reduce_algorithms<T>(peers, count))
            algorithms.emplace_back(algorithm.name, algorithm.run);
        if constexpr (std::is_same_v<T, float>)
            algorithms.emplace_back("own order", own_order_all_reduce(peers, count));
        for (const auto& [name, run] : algorithms) {
            rank.barrier();
            run(input.data(), output.data(), count, ReduceOp::sum, stream, "");
            peers.synchronize(stream);
            std::vector<T> host = output.to_host_now();
            const std::lock_guard lock(mutex);
            all[name].resize(static_cast<std::size_t>(ranks));
            all[name][static_cast<std::size_t>(rank.rank())] = std::move(host);
        }
    });
    return all;
}

template <class T>
void require_bits(int ranks, std::size_t count) {
    std::vector<std::vector<T>> inputs;
    for (int r = 0; r < ranks; r++)
        inputs.push_back(rounding_values<T>(r, count));
    const std::map<std::string, Results<T>> all = results<T>(ranks, count);
    CAPTURE(ranks, count, ddp::name_of(element_type<T>()));
    REQUIRE(all.size() >= 6);
    for (const auto& [name, of_ranks] : all) {
        CAPTURE(name);
        REQUIRE(have_same_bits(of_ranks) == (name != "own order" || ranks <= 2));
    }
    const std::vector<T> ring = sum_round_the_ring(inputs), by_rank = sum_by_rank(inputs);
    for (const ListedAllReduce& listed : all_reduces)
        REQUIRE((!listed.keeps_ring_order || are_same(all.at(listed.name)[0], ring)));
    REQUIRE(are_same(all.at("server")[0], by_rank));
    if (ranks == 4)
        REQUIRE(are_same(all.at("reduce+broadcast")[0], sum_of_pairs(inputs)));
    REQUIRE(are_same(ring, by_rank) == (ranks <= 2));  // the data shows the order
}

}  // namespace

TEST_CASE("the same bits on all ranks, and those of the documented order", "[exhaustive]") {
    for (int ranks : {1, 2, 3, 4, 5, 8})
        for (const std::size_t count : {1009, 16'384}) {
            require_bits<float>(ranks, count);
            require_bits<double>(ranks, count);
            require_bits<__half>(ranks, count);
            require_bits<__nv_bfloat16>(ranks, count);
        }
}

}  // namespace ddp::test
