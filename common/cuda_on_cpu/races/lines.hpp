#pragma once
#include <cstdint>
#include <string>

namespace cuda_on_cpu {

// Places in the program's code, as numbers that fit into 30 bits; 0: elsewhere.
std::uint32_t number_of_place(const void* code);

// Returns "02_kernels/tree.cu:12", the line of this place as its reader knows it; for code that was
// inlined from the headers of this library or of the system, the line that called it. By addr2line,
// which comes with every compiler.
std::string line_of_place(std::uint32_t place);

}  // namespace cuda_on_cpu
