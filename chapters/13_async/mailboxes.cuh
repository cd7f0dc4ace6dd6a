#pragma once
// The server's search for a message.
//
// Three mailboxes, and the search that begins at worker 2:
//
//                 posted by the worker    acknowledged by the server
//     worker 1             5                        4                   full
//     worker 2             7                        7                   empty
//     worker 3             4                        3                   full: found first
//
// The next search begins at worker 1, the one after worker 3: taking turns, the server passes over
// no worker forever.
#include "06_messages/wait.cuh"

namespace ddp {

// Returns the first of the ranks 1 to `workers`, from rank `first` on and around, whose mailbox is
// full, and 0 if all are empty.
__device__ inline int full_mailbox(const PeersView& view, int workers, int first) {
    for (int i = 0; i < workers; i++) {
        const int worker = 1 + (first - 1 + i) % workers;
        // Full: the worker has posted more messages than this rank has acknowledged. Both counters
        // are in the control blocks of 06_messages. Relaxed loads are enough, since the receive
        // that follows looks at the flag again, with acquire.
        const std::uint64_t acknowledged =
            load_relaxed(view.control[worker]->acknowledged[view.rank]);
        if (load_relaxed(view.own().from[worker].posted) > acknowledged)
            return worker;
    }
    return 0;
}

}  // namespace ddp
