#pragma once
// Send and receive between two ranks of different hosts, through a FIFO for each pair and way.
#include <map>
#include <string>

#include "06_messages/peers.hpp"
#include "07_broadcast/broadcast.hpp"
#include "09_all_reduce/hosts/network_proxy.hpp"

namespace ddp {

class PairsOverHosts {
  public:
    // All ranks make theirs together. Lines are added to `carrier`, which starts when all are
    // there.
    PairsOverHosts(Peers& peers, NetworkProxy& proxy);

    // As Peers::send and receive: a send is over when the receiver's kernel has asked for the data
    // and all of it is on that side. `peer` is on another host.
    void send(const AnyArray& array, int peer, Stream& stream, const std::string& name);
    void receive(const AnyArray& array, int peer, Stream& stream, const std::string& name);

  private:
    // One way between this rank and another one. Whoever uses it next waits for the one before.
    struct Algorithm {
        Fifo* fifo = nullptr;
        Event last;
    };
    using TransferKernel = void (*)(Collective, Fifo*, std::byte*, std::size_t);
    void launch(TransferKernel kernel, OperationRecord record, int peer, Algorithm& algorithm,
                void* data, std::size_t bytes, Stream& stream);

    Peers& peers_;
    std::map<int, Algorithm> to_, from_;  // by rank
};

}  // namespace ddp
