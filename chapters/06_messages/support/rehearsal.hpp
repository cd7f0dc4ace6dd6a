#pragma once
// That the kernels of all ranks run at the same time is tried before any of them matters.
#include "06_messages/control.hpp"

namespace ddp {

class Rank;

// Launches one small kernel for each rank, which meets those of all others. Throws
// std::runtime_error, on all ranks, if they have not met within a second on a GPU, or within the
// job's time-out on a CPU. All ranks of the job call it together; each has opened the arenas of the
// others.
void rehearse(Rank& rank, const PeersView& view);

}  // namespace ddp
