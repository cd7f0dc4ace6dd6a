#pragma once
// CUDA_ON_CPU_LEAVES_OUT(name): calling the function `name` does not compile, and the compiler
// prints the note below.
#include <cstddef>

#define CUDA_ON_CPU_LEAVES_OUT(name)                                                         \
    template <class... Arguments>                                                            \
    int name(const Arguments&...) {                                                          \
        static_assert(sizeof...(Arguments) == static_cast<std::size_t>(-1), #name            \
                      " is not in the CPU subset of CUDA: see common/cuda_on_cpu/README.md " \
                      "for what is, or build with the preset cuda for a GPU");               \
        return 0;                                                                            \
    }
