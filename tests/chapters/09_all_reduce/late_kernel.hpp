#pragma once
// Work on a stream around a collective that only the order of the stream makes right.
#include "common/gpu/gpu.hpp"

namespace ddp::test {

// After a while, data[i] becomes data[i] + more.
void add_late(float* data, std::size_t count, float more, Stream& stream);

}  // namespace ddp::test
