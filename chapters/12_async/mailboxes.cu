#include "12_async/mailboxes.hpp"

#include <stdexcept>

#include "06_messages/wait.cuh"

namespace ddp {
namespace {

// One thread: looks through the mailboxes of ranks 1 to `workers`, from `first` on and around. A
// mailbox is full if its owner has posted more than we have acknowledged.
__global__ void find_mail(PeersView view, OperationRecord record, int workers, int first,
                          int* found) {
    int full = 0;
    const auto is_one_full = [&] {
        for (int i = 0; i < workers && full == 0; i++) {
            const int worker = 1 + (first - 1 + i) % workers;
            const std::uint64_t acknowledged =
                load_acquire(view.control[worker]->acknowledged[view.rank]);
            if (load_acquire(view.own().from[worker].posted) > acknowledged)
                full = worker;
        }
        return full != 0;
    };
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
    for (int worker = 1; worker <= workers; worker++)
        if (peers.view().control[worker] == nullptr)
            throw std::invalid_argument("worker " + std::to_string(worker) +
                                        " is on another host, where kernels cannot reach");
    peers.rank().keep_until_run_ends(found_);
}

int Mailboxes::wait(Stream& stream) {
    OperationRecord record = peers_.next_record(
        {.operation = "wait for mail", .count = static_cast<std::size_t>(workers_)});
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
