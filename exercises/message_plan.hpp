#pragma once
// An all-reduce on paper: which rank sends what to which, round after round. Nothing is sent.
#include <vector>

namespace ddp {

enum class Arrival { add, replace };  // what the receiver has becomes the sum; or what has come

// Chunks `first`, ..., `first + count - 1` of the array of rank `from` go to rank `to`.
struct PlannedMessage {
    int from, to;
    int first, count;
    Arrival arrival;
};

// The array has `chunks` chunks of equal length, and every rank begins with its own summands in
// all of them.
//
// The messages of a round are on their way at the same time. Each carries what its sender has when
// the round begins. What has come is added, or replaces what was there, when the round ends.
struct MessagePlan {
    int chunks;
    std::vector<std::vector<PlannedMessage>> rounds;
};

}  // namespace ddp
