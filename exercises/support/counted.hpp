#pragma once
// Arrays in device memory whose reads or writes can be counted: for contracts that say how often.
#include <cstddef>

#include "common/gpu/gpu.hpp"

namespace ddp {

// Numbers that can only be read. `reads` has a counter for each, or is nullptr.
class CountedReads {
  public:
    explicit CountedReads(const float* values, unsigned int* reads = nullptr)
        : values_(values), reads_(reads) {}
    __device__ float read(std::size_t i) const {
        if (reads_ != nullptr)
            atomicAdd(&reads_[i], 1u);
        return values_[i];
    }

  private:
    const float* values_;
    unsigned int* reads_;
};

// Numbers that can only be written. `writes` has a counter for each, or is nullptr.
class CountedWrites {
  public:
    explicit CountedWrites(float* values, unsigned int* writes = nullptr)
        : values_(values), writes_(writes) {}
    __device__ void write(std::size_t i, float value) const {
        if (writes_ != nullptr)
            atomicAdd(&writes_[i], 1u);
        values_[i] = value;
    }

  private:
    float* values_;
    unsigned int* writes_;
};

}  // namespace ddp
