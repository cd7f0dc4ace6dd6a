#pragma once
// The contract of the exercise gather_order: which blocks of a sharded model are gathered when, so
// that all ranks meet, and no more than two are there at a time.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

enum class Action { gather, forward, backward, release, reduce_scatter };

// A call of the host. It enqueues `gather` and `reduce_scatter` on the communication's stream, and
// `forward` and `backward` on the one that computes. `release` frees the block's gathered
// parameters.
struct Planned {
    Action action;
    int block;

    bool operator==(const Planned&) const = default;
};

// Task step_plan. Returns a step of a model of `blocks` blocks, one or more: forward from block 0
// to the last, and backward from the last to block 0.
//
//  - A block is computed while it is gathered. Two blocks are gathered at a time, at most.
//  - The next block is gathered while one is computed: its gather is enqueued before that.
//  - A block is gathered once for its forward and once for its backward. Only the last one stays in
//    between, and is gathered once.
//  - Behind its backward, and before the next one, a block's gradients are reduce-scattered.
//  - After the step no block is gathered.
std::vector<Planned> step_plan(int blocks);

// Task agreed_blocks. In this step a rank may leave out blocks, which it draws by itself:
// uses[b] says whether this rank uses block b. Returns the blocks that this rank gathers, in the
// order of the model: the same on all ranks, and none that no rank uses. Every rank calls
// sum_over_ranks once, with one number for each block.
std::vector<int> agreed_blocks(const std::vector<bool>& uses, const SumOverRanks& sum_over_ranks);

// Task first_difference. The diagnosis of a step that hangs: calls[r] has the collectives that rank
// r has enqueued, in its order.
struct Difference {
    std::size_t place;       // the number of the first call in which ranks differ
    std::vector<int> ranks;  // whose call there is not rank 0's; one that is missing is another one

    bool operator==(const Difference&) const = default;
};
std::optional<Difference> first_difference(const std::vector<std::vector<Planned>>& calls);

}  // namespace ddp
