#pragma once
// The contract of the exercise rail_trees: two levels with a tree along each rail, in the place of
// a ring.
#include "06_messages/point_to_point.hpp"
#include "exercises/message_plan.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Every one of H nodes has L ranks; rank h * L + i is at place i of node h. The array has L chunks,
// and the rail i, the ranks at place i, sums up chunk i in a tree. Along that rail the nodes are
// numbered anew, from the tree's root on: node h is vertex (h - i) modulo H, so the root of rail i
// is on node i modulo H.
//
//     vertex    0   1   2   3   4   5   6        D = the smallest whole number with 2^D >= H
//     up        ◀───┘   ◀───┘   ◀───┘            first: 1 to 0, 3 to 2, 5 to 4
//               ◀───────┘       ◀───────┘        second: 2 to 0, 6 to 4
//               ◀───────────────┘                third: 4 to 0; then the same backwards, downwards
//
// Task tree_plan. Returns the messages of this all-reduce. There are two or more nodes, any number
// of them, and one or more ranks on each:
//
//     one round     on each node every rank i gets chunk i from each other rank, and adds
//     D rounds      up: in the k-th round, k = 0, 1, ..., each vertex whose number is an odd
//                   multiple of 2^k sends to the vertex whose number is 2^k less, which adds
//     D rounds      down: the same pairs, last round first, the other way, and chunks replace
//     one round     on each node every rank i sends chunk i to each other rank
//
// If a node has one rank, the first and the last round are left out.
MessagePlan rail_tree_plan(int nodes, int ranks_per_node);

// Task crossover. Returns the number of bytes up to which trees are faster than rings along the
// rails. `nodes` is a power of two from 2 on. Each rank has a port of its own; a message of n bytes
// between nodes takes message.seconds(n), whose alpha and beta are above 0; within a node nothing
// takes any time. Returns 0 if rings
// are as fast or faster for every size.
double trees_are_faster_up_to(const CostModel& message, int nodes, int ranks_per_node);

}  // namespace ddp
