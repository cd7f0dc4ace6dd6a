#pragma once
// CUDA on a CPU: the part of the CUDA runtime that this project uses, under CUDA's own names. What
// is not here does not compile, and says so. How it works: common/cuda_on_cpu/README.md.
#include "cuda_on_cpu/kernel_api.hpp"
#include "cuda_on_cpu/outside_the_subset.hpp"
#include "cuda_on_cpu/runtime_api.hpp"
#include "cuda_on_cpu/types.hpp"
