#pragma once
// For communicators over libraries, which would take any memory: programs must not come to depend
// on that.
#include <cstddef>
#include <string>

#include "06_messages/shared_arena.hpp"

namespace ddp {

// Throws std::invalid_argument, naming `operation`, unless the `bytes` at `data`, or `parts` times
// as many, lie in `arena`. Nothing may be anywhere.
void require_in_arena(SharedArena& arena, const void* data, std::size_t bytes,
                      const std::string& operation, std::size_t parts = 1);

}  // namespace ddp
