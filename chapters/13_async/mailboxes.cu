// Three mailboxes on the server, and the search that begins at worker 2:
//
//                 posted by the worker    acknowledged by the server
//     worker 1             5                        4                   full
//     worker 2             7                        7                   empty
//     worker 3             4                        3                   full: found first
//
// The next search begins at worker 1, the one after worker 3: taking turns, the server passes over
// no worker forever.
#include "13_async/mailboxes.hpp"

#include <stdexcept>

#include "06_messages/wait.cuh"

namespace ddp {
namespace {

// Waits, in one thread, until the mailbox of a rank from 1 to `workers` is full, and writes that
// rank to `found`. Looks from rank `first` on and around.
__global__ void find_mail(const __grid_constant__ PeersView view,
                          const __grid_constant__ OperationRecord record, int workers, int first,
                          int* found) {
    int full = 0;
    const auto is_one_full = [&] {
        for (int i = 0; i < workers && full == 0; i++) {
            const int worker = 1 + (first - 1 + i) % workers;
            // Full: the worker has posted more messages than this rank has acknowledged. Both
            // counters are in the control blocks of 06_messages. Relaxed loads are enough, since
            // the receive that follows looks at the flag again, with acquire.
            const std::uint64_t acknowledged =
                load_relaxed(view.control[worker]->acknowledged[view.rank]);
            if (load_relaxed(view.own().from[worker].posted) > acknowledged)
                full = worker;
        }
        return full != 0;
    };
    // A wait like any other of 06_messages: it ends with the time-out, or when the run has failed.
    // The rank to blame is the one that the search began with.
    if (!begin_operation(view, record) ||
        !wait_or_blame(view, record, is_one_full, [first] { return first; }))
        return;
    *found = full;
    end_operation(view);
}

}  // namespace

Mailboxes::Mailboxes(Peers& peers, int workers)
    : peers_(peers), workers_(workers), found_(std::make_shared<PinnedBuffer<int>>(1)) {
    const Rank& rank = peers.rank();
    if (rank.rank() != 0 || workers < 1 || workers >= rank.world_size())
        throw std::invalid_argument("rank 0 can have mailboxes for 1 to " +
                                    std::to_string(rank.world_size() - 1) + " workers, not rank " +
                                    std::to_string(rank.rank()) + " for " +
                                    std::to_string(workers));
    // A kernel that still waits may write to it after this object has gone.
    peers.rank().keep_until_run_ends(found_);
}

int Mailboxes::wait(Stream& stream) {
    OperationRecord record = peers_.next_record({.operation = "wait for mail"});  // without data
    record.count = static_cast<std::uint64_t>(workers_);
    record.set_type("mailboxes");
    launch_cooperative(stream, {1, 1}, find_mail, peers_.view(), record, workers_, next_,
                       found_->data());
    peers_.enqueued(stream);
    peers_.synchronize(stream);
    const int worker = (*found_)[0];
    next_ = 1 + worker % workers_;
    return worker;
}

}  // namespace ddp
