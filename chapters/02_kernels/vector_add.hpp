#pragma once
// The first kernel: many threads add two arrays, one element each. And who computes what.
#include <vector>

#include "common/gpu/gpu.hpp"

namespace ddp {

// Returns a[i] + b[i] for every i, computed on the device in blocks of `threads` threads. `a` and
// `b` have the same size, 1 or more.
std::vector<float> add_on_device(const std::vector<float>& a, const std::vector<float>& b,
                                 unsigned int threads);

// The thread that computes an element: its block, and its number in the block.
struct ThreadPlace {
    int block = -1;
    int thread = -1;
};

// Returns which thread of a grid of `blocks` blocks of `threads` threads computes element i by the
// index formula, for every i below n. The device fills in the answers: -1 where no thread does.
std::vector<ThreadPlace> places_by_index(unsigned int n, unsigned int blocks, unsigned int threads);
// Returns it for grid_range, by which all elements are computed, however few threads there are.
std::vector<ThreadPlace> places_by_grid_range(unsigned int n, unsigned int blocks,
                                              unsigned int threads);

}  // namespace ddp
