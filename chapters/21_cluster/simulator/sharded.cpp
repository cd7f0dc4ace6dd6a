// The stages in time, for a model of three blocks with forward F and backward B:
//
//     stage 0  compute   F0 F1 F2 B2 ── B1 ── B0 ──────── optimizer
//              network              └ reduce 2 ─ reduce 1 ─ reduce 0 ┘       all-reduces
//     stage 1  compute   F0 F1 F2 B2 ── B1 ── B0 ─── optimizer / N
//              network              └ scatter 2 ─ ... scatter 0 ┘ └ gather 0, 1, 2   in the open
//     stage 3  compute          F0 ─────── F1 ─────── F2 ── B2 ───── B1 ───────── B0
//              network   gather 0 ─ gather 1 ─ gather 2 ─ gather 1 ─ scatter 2, gather 0 ─ ...
//
// In stage 3 a gather waits until a block is released: the one that was computed before the block
// which computes now.
#include "21_cluster/simulator/sharded.hpp"

#include <algorithm>
#include <stdexcept>

namespace ddp::simulator {
namespace {

// One stream that computes and one network, each of which takes things in the order in which they
// are enqueued.
struct Streams {
    double compute_s = 0, network_s = 0;

    // Enqueues a collective that may not begin before `ready_s`; returns when it has ended.
    double communicate(double ready_s, double seconds) {
        return network_s = std::max(network_s, ready_s) + seconds;
    }
    // Does the same with a computation.
    double compute(double ready_s, double seconds) {
        return compute_s = std::max(compute_s, ready_s) + seconds;
    }
};

// Stages 0 to 2: whatever backward has finished is reduced; what is reduced is a block here.
void replicated_step(const ShardedStep& step, int stage, int ranks, const Halves& halves,
                     Streams& streams) {
    for (const Block& block : step.blocks)
        streams.compute(0, block.forward_s);
    for (std::size_t i = step.blocks.size(); i-- > 0;) {
        const Block& block = step.blocks[i];
        const double ready_s = streams.compute(0, block.backward_s);
        streams.communicate(ready_s, halves.reduce_scatter_s(block.bytes) +
                                         (stage == 0 ? halves.all_gather_s(block.bytes) : 0));
    }
    streams.compute(streams.network_s, step.optimizer_s / (stage == 0 ? 1 : ranks));
    if (stage > 0)
        for (const Block& block : step.blocks)
            streams.compute_s =
                streams.communicate(streams.compute_s, halves.all_gather_s(block.bytes));
}

// Stage 3. A block's gather is enqueued before the computation of the block before it, or without
// prefetch behind that.
void sharded_step(const ShardedStep& step, int ranks, const Halves& halves, bool prefetch,
                  Streams& streams) {
    double released_s = 0;  // when the last block that was released has been
    double gathered_s = streams.communicate(0, halves.all_gather_s(step.blocks[0].bytes));
    // Computes a block while `next` is gathered; returns when it has ended.
    const auto compute = [&](double seconds, const Block* next) {
        double next_s = gathered_s;
        if (next != nullptr && prefetch)
            next_s = streams.communicate(released_s, halves.all_gather_s(next->bytes));
        const double end_s = streams.compute(gathered_s, seconds);
        if (next != nullptr && !prefetch)
            next_s = streams.communicate(end_s, halves.all_gather_s(next->bytes));
        gathered_s = next_s;
        return end_s;
    };
    const std::size_t last = step.blocks.size() - 1;
    for (std::size_t i = 0; i < last; i++)
        released_s = compute(step.blocks[i].forward_s, &step.blocks[i + 1]);
    compute(step.blocks[last].forward_s, nullptr);  // it stays for backward
    for (std::size_t i = step.blocks.size(); i-- > 0;) {
        const Block& block = step.blocks[i];
        released_s = compute(block.backward_s, i > 0 ? &step.blocks[i - 1] : nullptr);
        streams.communicate(released_s, halves.reduce_scatter_s(block.bytes));
    }
    streams.compute(streams.network_s, step.optimizer_s / ranks);
}

}  // namespace

// Every schedule but the trees' first collects each chunk on one rank, and then hands it out by as
// many rounds.
Schedule half_schedule(Algorithm algorithm, const Cluster& cluster, double bytes, Half half) {
    if (algorithm == Algorithm::tree)
        throw std::invalid_argument(
            "A tree has no reduce-scatter: take another algorithm for a sharded step.");
    Schedule result = schedule(algorithm, cluster, bytes);
    for (Rounds& rounds : result.parts) {
        const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
        rounds = half == Half::reduce_scatter ? Rounds(rounds.begin(), middle)
                                              : Rounds(middle, rounds.end());
    }
    return result;
}

double bytes_sent(int stage, int ranks, double bytes) {
    const double one_half = bytes * (ranks - 1) / ranks;
    return (stage == 3 ? 3 : 2) * one_half;
}

double sharded_step_s(const ShardedStep& step, int stage, int ranks, const Halves& halves,
                      bool prefetch) {
    Streams streams;
    if (stage < 3)
        replicated_step(step, stage, ranks, halves, streams);
    else
        sharded_step(step, ranks, halves, prefetch, streams);
    return streams.compute_s;
}

double operations_per_byte(double tokens, double bytes_of_parameter) {
    return 2 * tokens / bytes_of_parameter;
}

double operations_to_hide_byte(double operations_per_s, double bytes_per_s, int ranks) {
    return operations_per_s / bytes_per_s * (ranks - 1) / ranks;
}

}  // namespace ddp::simulator
