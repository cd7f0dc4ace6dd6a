#pragma once
// Work on a stream before and after a collective, whose result is right only if the order of the
// stream is kept.
#include "common/gpu/gpu.hpp"

namespace ddp::test {

// Enqueues a kernel that sleeps for 20 ms, and then adds `more` to data[i], i = 0, ..., count - 1.
void add_late(float* data, std::size_t count, float more, Stream& stream);

}  // namespace ddp::test
