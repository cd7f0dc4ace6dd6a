#pragma once
// A FIFO: a row of slots that one side fills and the other side empties, each at its own pace. Both
// count the slots from 0 on for as long as the FIFO lives; number n is in place n % fifo_slots.
//
// Between ranks of one node it lies in the receiver's arena, and kernels are on both sides. Where
// the other rank is on another node, the network proxy (network/network_proxy.hpp) takes its place
// on this one, and the FIFO lies in pinned memory, which kernels and threads of the host reach.
#include <cstddef>
#include <cstdint>

#include "06_messages/control.hpp"

namespace ddp {

// The size of a slot. A slice and what TCP adds are less than 64 KiB, the most that Linux hands to
// a network card at once.
inline constexpr std::size_t slot_bytes = 63 << 10;

// While some are on their way, others are filled and emptied.
inline constexpr std::uint64_t fifo_slots = 8;

struct FifoHead {
    Flag filled;           // how many slots have been filled so far, by who fills them,
    Flag emptied;          // ... and emptied, by who empties them,
    Flag wanted;           // ... who has asked for so many
    OperationRecord last;  // what came in the last operation; of who empties them
    std::uint64_t bytes[fifo_slots] = {};
};

struct Fifo : FifoHead {
    alignas(256) std::byte slots[fifo_slots][slot_bytes];

    __host__ __device__ std::byte* slot(std::uint64_t number) { return slots[number % fifo_slots]; }
};

// One side of a FIFO, as kernels get it: the FIFO, and the rank on the other side.
struct FifoSide {
    Fifo* fifo = nullptr;
    int peer = -1;                    // the number of that rank in the job
    ControlBlock* control = nullptr;  // its control block; null if it is on another node
};

}  // namespace ddp
