// The check that the other tests use can fail: it notices each typical mistake.
#include <atomic>
#include <memory>

#include "09_all_reduce/all_reduce.hpp"
#include "tests/chapters/09_all_reduce/mutants.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

// What the mutants need in addition to their arguments.
struct Workbench {
    Workbench(Peers& of_peers, std::size_t most)
        : peers(of_peers),
          ranks(peers.rank().world_size()),
          rank(peers.rank().rank()),
          everything(peers.allocate<float>(most * static_cast<std::size_t>(ranks))) {}

    Peers& peers;
    const int ranks, rank;
    ArenaBuffer<float> everything;
};

// Reduces `used` of the arrays of all ranks, which lie one after the other in `all`, from that of
// rank `first` on and round. An average is divided by `divide_by`.
__global__ void add_arrays(ReduceOp op, const float* all, float* to, std::size_t count, int ranks,
                           int first, int used, int divide_by) {
    for (std::size_t i : grid_range(count)) {
        const auto of = [&](int r) {
            return all[static_cast<std::size_t>((first + r) % ranks) * count + i];
        };
        float value = of(0);
        for (int r = 1; r < used; r++)
            value = op == ReduceOp::maximum   ? combine<ReduceOp::maximum>(value, of(r))
                    : op == ReduceOp::minimum ? combine<ReduceOp::minimum>(value, of(r))
                                              : value + of(r);
        to[i] = op == ReduceOp::average ? value / static_cast<float>(divide_by) : value;
    }
}

__global__ void spoil(float* data, std::size_t i) {
    data[i] += 1;
}

namespace {

using Bench = std::shared_ptr<Workbench>;

// Returns two_shot_all_reduce with changed arguments.
template <class Change>
AllReduce<float> changed(const Bench& bench, Change change) {
    return [bench, change](const float* input, float* output, std::size_t count, ReduceOp op,
                           Stream& stream, const std::string& name) {
        change(count, op);
        two_shot_all_reduce(bench->peers, input, output, count, op, stream, name);
    };
}

// Returns an all-reduce of only `used` ranks, the first of which is this one.
AllReduce<float> sum_of_some(const Bench& bench, int used, int divide_by) {
    return [=](const float* input, float* output, std::size_t count, ReduceOp op, Stream& stream,
               const std::string&) {
        all_gather(bench->peers, input, bench->everything.data(), count, stream);
        launch(stream, grid_for(count), add_arrays, op, bench->everything.data(), output, count,
               bench->ranks, bench->rank, used, divide_by);
    };
}

// Returns a correct all-reduce that also changes one element: of the input, or behind the output.
AllReduce<float> spoils(const Bench& bench, bool the_input) {
    return [=](const float* input, float* output, std::size_t count, ReduceOp op, Stream& stream,
               const std::string& name) {
        two_shot_all_reduce(bench->peers, input, output, count, op, stream, name);
        if (the_input)
            launch(stream, {1, 1}, spoil, const_cast<float*>(input), std::size_t{0});
        else
            launch(stream, {1, 1}, spoil, output, count);
    };
}

// An all-reduce with a typical mistake.
struct Mutant {
    std::string mistake;
    AllReduce<float> run;
    int least_ranks = 2;  // with fewer the result is right
};

// For up to `most` elements. They need as many arrays of `most` floats in the arena as there are
// ranks.
std::vector<Mutant> all_mutants(Peers& peers, std::size_t most) {
    const auto bench = std::make_shared<Workbench>(peers, most);
    const int ranks = bench->ranks;
    return {
        {"does nothing", [](auto&&...) {}},
        {"adds only its right neighbour", sum_of_some(bench, 2, 2), 3},
        {"leaves the last rank out", sum_of_some(bench, ranks - 1, ranks)},
        {"adds itself twice", sum_of_some(bench, ranks + 1, ranks)},
        {"forgets to divide",
         changed(bench, [](std::size_t&,
                           ReduceOp& op) { op = op == ReduceOp::average ? ReduceOp::sum : op; })},
        {"takes bytes for elements",
         changed(bench, [](std::size_t& count, ReduceOp&) { count /= sizeof(float); })},
        {"leaves the last element out",
         changed(bench, [](std::size_t& count, ReduceOp&) { count -= count > 0; })},
        {"writes into its input", spoils(bench, true)},
        {"writes behind its output", spoils(bench, false)},
    };
}

constexpr std::size_t largest = 1009;

// Returns how many elements of this rank the check counts as wrong, over turns like those of the
// tests.
int wrong_elements(Peers& peers, const AllReduce<float>& run) {
    CollectiveCheck<float> check(peers, largest);
    Stream stream;
    peers.rank().barrier();
    for (const std::size_t count : {std::size_t{5}, largest})
        for (const ReduceOp op : all_ops)
            for (const bool in_place : {false, true})
                check.all_reduce(run, {count, op, in_place, 1, 2}, stream);
    peers.synchronize(stream);
    return check.wrong();
}

}  // namespace

AllReduce<float> own_order_all_reduce(Peers& peers, std::size_t most) {
    const auto bench = std::make_shared<Workbench>(peers, most);
    return sum_of_some(bench, bench->ranks, bench->ranks);
}

TEST_CASE("every typical mistake is noticed, on every rank") {
    for (int ranks : {2, 3, 4}) {
        World world(thread_options(ranks));
        std::vector<Mutant> mutants;
        std::vector<std::atomic<int>> noticed(100);
        world.run([&](Rank& rank) {
            Peers peers(rank, 1 << 20);
            const std::vector<Mutant> all = all_mutants(peers, largest);
            for (std::size_t i = 0; i < all.size(); i++)
                noticed[i] += wrong_elements(peers, all[i].run) > 0;
            if (rank.rank() == 0)
                mutants = all;
        });
        REQUIRE(mutants.size() == 9);
        for (std::size_t i = 0; i < mutants.size(); i++) {
            CAPTURE(ranks, mutants[i].mistake);
            REQUIRE(noticed[i] == (ranks >= mutants[i].least_ranks ? ranks : 0));
        }
    }
}

}  // namespace ddp::test
