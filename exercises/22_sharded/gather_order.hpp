#pragma once
// Exercise gather_order: which blocks of a sharded model are gathered when, so that all ranks meet
// and two blocks at most are there at a time.
//
//     two blocks    gather 0, gather 1, forward 0, release 0, forward 1, gather 0,
//                   backward 1, release 1, reduce_scatter 1, backward 0, release 0,
//                   reduce_scatter 0
//
// The check also tries: one block, up to nine; a rank that has made no call.
#include <cstddef>
#include <optional>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

enum class Action { gather, forward, backward, release, reduce_scatter };

// A call of the host. It enqueues work: computation and communication run at the same time.
struct Planned {
    Action action;
    int block;

    bool operator==(const Planned&) const = default;
};

// Task step_plan. Returns a step: forward from block 0 to the last, and backward to block 0.
//  - A block is computed while it is gathered. Two blocks at most are gathered at a time.
//  - The gather of the next block is enqueued before a block is computed.
//  - A block is gathered once for its forward and once for its backward. Only the last one stays in
//    between.
//  - A block's gradients are reduce-scattered after its backward, and before the next one.
//  - After the step no block is gathered.
std::vector<Planned> step_plan(int blocks);

struct Difference {
    std::size_t place;       // the number of the first call in which ranks differ
    std::vector<int> ranks;  // whose call there is not rank 0's, or is missing

    bool operator==(const Difference&) const = default;
};

// Task first_difference. Says why a step hangs. calls[r] has the collectives that rank r has
// enqueued, in its order.
std::optional<Difference> first_difference(const std::vector<std::vector<Planned>>& calls);

}  // namespace ddp
