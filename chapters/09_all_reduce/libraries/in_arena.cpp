#include "09_all_reduce/libraries/in_arena.hpp"

#include <stdexcept>

namespace ddp {

void require_in_arena(SharedArena& arena, const void* data, std::size_t bytes,
                      const std::string& operation, std::size_t parts) {
    if (parts == 0 || bytes == 0)
        return;
    const auto* begin = static_cast<const std::byte*>(data);
    const std::byte* end = arena.data() + arena.bytes();
    if (begin < arena.data() || begin > end ||
        bytes > static_cast<std::size_t>(end - begin) / parts)
        throw std::invalid_argument(operation +
                                    ": the data does not lie in this communicator's memory; "
                                    "allocate it by Communicator::allocate");
}

}  // namespace ddp
