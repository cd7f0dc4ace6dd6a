// The server waits for whichever worker is next:
//
//     host         wait: next = 2 ─┐                     ┌─▶ found = 3: receive from worker 3
//     find_mail                    └─ 2 3 1 2 3 1 2 3 ───┘    (and the next search begins at 1)
//     worker 3                            posts ▲
//
// The kernel looks into one mailbox after the other, again and again, until one is full. Host and
// kernel share the number that was found, which lies in pinned memory.
#include "13_async/mailboxes.hpp"

#include <stdexcept>

#include "13_async/mailboxes.cuh"

namespace ddp {
namespace {

// Waits, in one thread, until the mailbox of a rank from 1 to `workers` is full, and writes that
// rank to `found`. Looks from rank `first` on and around.
__global__ void find_mail(const __grid_constant__ PeersView view,
                          const __grid_constant__ OperationRecord record, int workers, int first,
                          int* found) {
    int full = 0;
    const auto is_one_full = [&] {
        full = full_mailbox(view, workers, first);
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
    const OperationRecord record = peers_.next_record(
        {.operation = "wait for mail in " + std::to_string(workers_) + " mailboxes",
         .inputs = 0,
         .outputs = 0});
    launch_cooperative(stream, {1, 1}, find_mail, peers_.view(), record, workers_, next_,
                       found_->data());
    peers_.enqueued(stream);
    peers_.synchronize(stream);
    const int worker = (*found_)[0];
    next_ = 1 + worker % workers_;
    return worker;
}

}  // namespace ddp
