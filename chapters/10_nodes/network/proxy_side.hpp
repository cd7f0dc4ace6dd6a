#pragma once
// The proxy's side of a FIFO: which slot it may begin with, and what it says when that is done.
#include "06_messages/support/host_flag.hpp"
#include "10_nodes/network/fifo.hpp"

namespace ddp {

// Returns whether slot `number` can begin: it leaves (`is_to` another node) when a kernel has
// filled it, and is filled when a kernel has asked for its bytes and emptied it.
inline bool can_begin(Fifo& fifo, bool is_to, std::uint64_t number) {
    if (is_to)
        return number < read_flag(fifo.filled);
    return number < read_flag(fifo.wanted) && number < read_flag(fifo.emptied) + fifo_slots;
}

// Says that the proxy is done with so many slots.
inline void say_done(Fifo& fifo, bool is_to, std::uint64_t slots) {
    write_flag(is_to ? fifo.emptied : fifo.filled, slots);
}

}  // namespace ddp
