#pragma once
// Exercise ring_by_hand: the sum of all ranks' arrays, on every rank, round a ring.
//
//     3 ranks, an array of 3 chunks; each digit says of how many ranks that chunk is the sum
//
//                     rank 0   rank 1   rank 2
//     begin             111      111      111
//     step 1, add       121      112      211     in step s rank r sends chunk r - s to the right,
//     step 2, add       321      132      213     and gets chunk r - s - 1 from the left,
//     step 3, copy      323      332      233     wrapping around: before chunk 0 is chunk 2
//     step 4, copy      333      333      333
//
// You may call: communicator.index() (this rank) and .world_size(), .send(data, count, to, stream)
// and .receive(data, count, from, stream), add(), and chunk_of(count, ranks, i, sizeof(float)),
// which has a begin and a size.
// The check also tries: one rank, up to five; arrays that do not divide, and empty ones.
#include <cstddef>

#include "09_all_reduce/all_reduce.hpp"
#include "09_all_reduce/communicator.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Enqueues to[i] += from[i] for `count` elements. This one is given.
void add(float* to, const float* from, std::size_t count, Stream& stream);

// Task reduce_scatter. Enqueues steps 1 to N - 1: afterwards rank r has the whole sum of chunk r.
// What its other chunks hold does not matter. `room` has space for one chunk.
void ring_reduce_scatter(Communicator& communicator, float* data, float* room, std::size_t count,
                         Stream& stream);

// Task all_gather. Enqueues steps N to 2 N - 2: rank r begins with the whole sum of chunk r, and
// every rank ends with all of them.
void ring_all_gather(Communicator& communicator, float* data, std::size_t count, Stream& stream);

}  // namespace ddp
