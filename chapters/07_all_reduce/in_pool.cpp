#include "07_all_reduce/in_pool.hpp"

#include <stdexcept>

namespace ddp {

void require_in_pool(Pool& pool, const void* data, std::size_t bytes,
                     const std::string& operation) {
    const auto* begin = static_cast<const std::byte*>(data);
    const std::byte* end = pool.data() + pool.bytes();
    if (bytes > 0 &&
        (begin < pool.data() || begin > end || bytes > static_cast<std::size_t>(end - begin)))
        throw std::invalid_argument(operation +
                                    ": the data does not lie in this communicator's memory; "
                                    "allocate it by Communicator::allocate");
}

}  // namespace ddp
