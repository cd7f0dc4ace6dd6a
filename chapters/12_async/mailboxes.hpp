#pragma once
// A mailbox for each worker, on the server: whoever has something to say leaves it there, and the
// server takes what lies in any of them.
//
// A send of chapter 06 leaves word at its receiver before any data moves, in a place of its own for
// each sender. So these places are the mailboxes; what is new is to look into all of them at once.
#include "06_messages/peers.hpp"

namespace ddp {

class Mailboxes {
  public:
    // Ranks 1 to `workers` send to this one, which is none of them. `peers` must live longer.
    // Throws std::invalid_argument if there are not so many.
    Mailboxes(Peers& peers, int workers);

    // Waits until a mailbox is full, and returns whose: what was sent is then to be received from
    // that rank. Of several the next one in turn after the last, so that none is passed over for
    // ever. Throws as Peers::synchronize.
    int wait(Stream& stream);

  private:
    Peers& peers_;
    const int workers_;
    int next_ = 1;  // where to look first
    std::shared_ptr<PinnedBuffer<int>> found_;
};

}  // namespace ddp
