// The stages in time, for a model of three blocks with forward F and backward B:
//
//     stage 0  compute   F0 F1 F2 B2 ── B1 ── B0 ──────── optimizer
//              network              └ reduce 2 ─ reduce 1 ─ reduce 0 ┘       all-reduces
//     stage 1  compute   F0 F1 F2 B2 ── B1 ── B0 ─── optimizer / N
//              network              └ scatter 2 ─ ... scatter 0 ┘ └ gather 0, 1, 2   in the open
//     stage 3  compute          F0 ─────── F1 ─────── F2 ── B2 ───── B1 ───────── B0
//              network   gather 0 ─ gather 1 ─ gather 2 ────────── scatter 2, gather 0 ─ ...
//
// In stage 3 a gather waits until a block is released: the one that was computed before the block
// which computes now. The last two are still there when backward begins.
#include "21_cluster/simulated_sharded.hpp"

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
// prefetch behind that. The last two blocks of forward are still there when backward begins.
void sharded_step(const ShardedStep& step, int ranks, const Halves& halves, bool prefetch,
                  Streams& streams) {
    const auto gather = [&](double ready_s, const Block& block) {
        return streams.communicate(ready_s, halves.all_gather_s(block.bytes));
    };
    double released_s = 0;  // when the last block that was released has been
    double gathered_s = gather(0, step.blocks[0]);
    // Computes a block, gathers the next one, and reduces what backward has `finished`.
    const auto compute = [&](double seconds, const Block* next, const Block* finished = nullptr) {
        double next_s = gathered_s;
        if (next != nullptr && prefetch)
            next_s = gather(released_s, *next);
        released_s = streams.compute(gathered_s, seconds);
        if (finished != nullptr)
            streams.communicate(released_s, halves.reduce_scatter_s(finished->bytes));
        if (next != nullptr && !prefetch)
            next_s = gather(released_s, *next);
        gathered_s = next_s;
    };
    const std::size_t last = step.blocks.size() - 1;
    for (std::size_t i = 0; i < last; i++)
        compute(step.blocks[i].forward_s, &step.blocks[i + 1]);
    compute(step.blocks[last].forward_s, nullptr);
    for (std::size_t i = step.blocks.size(); i-- > 0;) {
        const bool gathers = i > 0 && i < last;
        compute(step.blocks[i].backward_s, gathers ? &step.blocks[i - 1] : nullptr,
                &step.blocks[i]);
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
