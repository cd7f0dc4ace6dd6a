#pragma once
// Send and receive between two ranks of different nodes, through a FIFO for each pair and
// direction.
#include <map>

#include "06_messages/peers.hpp"
#include "07_broadcast/collective.hpp"
#include "10_nodes/network/network_proxy.hpp"
#include "10_nodes/placement.hpp"

namespace ddp {

class PairsOverNodes {
  public:
    // All ranks make theirs together. Adds channels to `proxy`, which starts when all are there.
    PairsOverNodes(Peers& peers, NetworkProxy& proxy, const Placement& placement);

    // Do the same as Peers::send and receive, with a rank of another node. A send is over when the
    // receiver's kernel has asked for the data and all of it is on that side.
    void send(const Call& call, Stream& stream);
    void receive(const Call& call, Stream& stream);

  private:
    // The FIFO from this rank to another one, or from it. The next kernel that uses it waits for
    // the one before.
    struct Direction {
        FifoSide side;
        Event last;
    };
    using TransferKernel = void (*)(Collective, FifoSide, std::byte*, std::size_t);
    void launch(TransferKernel kernel, const Call& call, Direction& direction, void* data,
                Stream& stream);

    Peers& peers_;
    std::map<int, Direction> to_, from_;  // by the other rank
};

}  // namespace ddp
