#pragma once
// Exercise rail_trees: two levels, with a tree along each rail instead of a ring.
//
//     7 nodes, along the rail i of the ranks at place i; vertex n is node (n + i) modulo 7
//
//     vertex     0   1   2   3   4   5   6
//     up, k = 0  ◀───┘   ◀───┘   ◀───┘        1 to 0, 3 to 2, 5 to 4
//     up, k = 1  ◀───────┘       ◀───────┘    2 to 0, 6 to 4
//     up, k = 2  ◀───────────────┘            4 to 0; then the same backwards, downwards
//
// The check also tries: two to eight nodes, with one to five ranks each.
#include "06_messages/point_to_point.hpp"
#include "exercises/message_plan.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task tree_plan. Returns the messages. Rank h * L + i is at place i of node h; the array has L
// chunks, and rail i sums up chunk i.
//
//     one round     on each node every rank i gets chunk i from each other rank, and adds
//     D rounds      up: in round k an odd multiple of 2^k sends to the vertex 2^k less, which adds
//     D rounds      down: the same pairs, last round first, the other way, and chunks replace
//     one round     on each node every rank i sends chunk i to each other rank
//
// D is the smallest whole number with 2^D >= H. If a node has one rank, the first and the last
// round are left out.
MessagePlan rail_tree_plan(int nodes, int ranks_per_node);

// Task crossover. Returns up to how many bytes trees are faster than rings along the rails; 0 if
// they never are. `nodes` is a power of two. Each rank has a port of its own, a message of n bytes
// between nodes takes message.seconds(n), and within a node nothing takes any time.
double trees_are_faster_up_to(const CostModel& message, int nodes, int ranks_per_node);

}  // namespace ddp
