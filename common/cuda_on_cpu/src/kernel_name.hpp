#pragma once
#include <cstdint>
#include <string>

namespace cuda_on_cpu {

// "saxpy(int, float*)": the name of the function at `address`, from this program's own symbol
// table; empty if the program was stripped.
std::string kernel_name(const void* address);

// Returns where the program was loaded: what its file calls 0.
std::uintptr_t load_address();

}  // namespace cuda_on_cpu
