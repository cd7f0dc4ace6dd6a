#pragma once
// A mailbox for each worker, on the server. A worker posts its message there, and the server takes
// the next message from any of them.
//
// In 06_messages a send writes a record into the receiver's memory before any data moves, and each
// sender has a record of its own there. These records are the mailboxes. New is only the wait for
// all of them at once.
#include "06_messages/peers.hpp"

namespace ddp {

class Mailboxes {
  public:
    // Mailboxes on rank 0, in which ranks 1 to `workers` post. `peers` must outlive this object.
    // Throws std::invalid_argument if this is not rank 0, if there are fewer ranks, or if one of
    // them is on another node.
    Mailboxes(Peers& peers, int workers);

    // Waits until a mailbox is full, and returns the rank whose message is in it: the caller then
    // receives from that rank. If several are full, takes the next one in turn after the last, so
    // that every worker is served. Throws as Peers::synchronize.
    int wait(Stream& stream);

  private:
    Peers& peers_;
    const int workers_;
    int next_ = 1;  // the first mailbox to look into
    std::shared_ptr<PinnedBuffer<int>> found_;
};

}  // namespace ddp
