#pragma once
#include <string>

namespace cuda_on_cpu {

// "saxpy(int, float*)": the name of the function at `address`, from this program's own symbol
// table; empty if the program was stripped.
std::string kernel_name(const void* address);

}  // namespace cuda_on_cpu
