#pragma once
// Counts what this program asks operator new for.
#include <cstddef>

namespace ddp::test {

// Bytes asked for since the program started; memory that was given back still counts.
std::size_t bytes_requested();

}  // namespace ddp::test
