#include "tests/chapters/09_all_reduce/mutants.hpp"

#include <array>
#include <memory>

#include "09_all_reduce/all_reduce.hpp"

namespace ddp::test {

// What the mutants need in addition to their arguments.
struct Workbench {
    Workbench(Peers& of_peers, std::size_t most)
        : peers(of_peers),
          ranks(peers.rank().world_size()),
          rank(peers.rank().rank()),
          everything(peers.allocate<float>(most * static_cast<std::size_t>(ranks))),
          result(peers.allocate<float>(most)) {}

    Peers& peers;
    const int ranks, rank;
    ArenaBuffer<float> everything, result;
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

// Copies chunk c + 1 of `from` to chunk c of `to`, where it has as many elements.
__global__ void take_next_chunk(const float* from, float* to, std::size_t count,
                                std::size_t ranks) {
    for (std::size_t c = 0; c < ranks; c++) {
        const Chunk mine = chunk_of(count, ranks, c, sizeof(float));
        const Chunk next = chunk_of(count, ranks, (c + 1) % ranks, sizeof(float));
        for (std::size_t i : grid_range(mine.size))
            to[mine.begin + i] = from[i < next.size ? next.begin + i : mine.begin + i];
    }
}

__global__ void spoil(float* data, std::size_t i) {
    data[i] += 1;
}

namespace {

using Bench = std::shared_ptr<Workbench>;

// Gathers all arrays and reduces `used` of them, from that of rank `first` on.
void gather_and_add(Workbench& bench, const float* input, float* output, std::size_t count,
                    ReduceOp op, Stream& stream, int first, int used, int divide_by) {
    all_gather(bench.peers, input, bench.everything.data(), count, stream);
    launch(stream, grid_for(count), add_arrays, op, bench.everything.data(), output, count,
           bench.ranks, first, used, divide_by);
}

// Returns two_shot_all_reduce with changed arguments.
template <class Change>
AllReduce<float> changed(const Bench& bench, Change change) {
    return [bench, change](const float* input, float* output, std::size_t count, ReduceOp op,
                           Stream& stream, const std::string& name) {
        change(count, op);
        two_shot_all_reduce(bench->peers, input, output, count, op, stream, name);
    };
}

// Returns an all-reduce of only `used` ranks, the first of which is `offset` after this one.
AllReduce<float> sum_of_some(const Bench& bench, int offset, int used, int divide_by) {
    return [=](const float* input, float* output, std::size_t count, ReduceOp op, Stream& stream,
               const std::string&) {
        gather_and_add(*bench, input, output, count, op, stream,
                       (bench->rank + offset) % bench->ranks, used, divide_by);
    };
}

AllReduce<float> chunk_off_by_one(const Bench& bench) {
    return [=](const float* input, float* output, std::size_t count, ReduceOp op, Stream& stream,
               const std::string& name) {
        two_shot_all_reduce(bench->peers, input, bench->result.data(), count, op, stream, name);
        launch(stream, grid_for(count), take_next_chunk, bench->result.data(), output, count,
               static_cast<std::size_t>(bench->ranks));
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

}  // namespace

std::vector<Mutant> all_mutants(Peers& peers, std::size_t most) {
    const auto bench = std::make_shared<Workbench>(peers, most);
    const int ranks = bench->ranks;
    return {
        {"does nothing", [](auto&&...) {}},
        {"adds only its right neighbour", sum_of_some(bench, 0, 2, 2), 3},
        {"divides by 2", sum_of_some(bench, 0, ranks, 2), 3},
        {"leaves the last rank out", sum_of_some(bench, 0, ranks - 1, ranks)},
        {"adds itself twice", sum_of_some(bench, 0, ranks + 1, ranks)},
        {"forgets to divide",
         changed(bench, [](std::size_t&,
                           ReduceOp& op) { op = op == ReduceOp::average ? ReduceOp::sum : op; })},
        {"takes the minimum for the maximum", changed(bench,
                                                      [](std::size_t&, ReduceOp& op) {
                                                          op = op == ReduceOp::maximum
                                                                   ? ReduceOp::minimum
                                                                   : op;
                                                      })},
        {"takes bytes for elements",
         changed(bench, [](std::size_t& count, ReduceOp&) { count /= sizeof(float); })},
        {"does element 0 only",
         changed(bench,
                 [](std::size_t& count, ReduceOp&) { count = std::min<std::size_t>(count, 1); })},
        {"leaves the last element out",
         changed(bench, [](std::size_t& count, ReduceOp&) { count -= count > 0; })},
        {"is off by one chunk", chunk_off_by_one(bench)},
        {"writes into its input", spoils(bench, true)},
        {"writes behind its output", spoils(bench, false)},
    };
}

AllReduce<float> own_order_all_reduce(Peers& peers, std::size_t most) {
    const auto bench = std::make_shared<Workbench>(peers, most);
    return sum_of_some(bench, 0, bench->ranks, bench->ranks);
}

}  // namespace ddp::test
