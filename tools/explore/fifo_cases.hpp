#pragma once
// FIFOs of 10_nodes as cases: between two kernels of one node, and through the proxies of two.
#include "10_nodes/network/fifo.hpp"
#include "tools/explore/cases.hpp"

namespace ddp {

// A rank's FIFO, in its arena.
struct CaseFifo : Peers::Extension {
    explicit CaseFifo(Peers& peers);

    ArenaBuffer<Fifo> fifo;
};

}  // namespace ddp
