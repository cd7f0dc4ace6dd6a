#pragma once
// A transport carries bytes from node to node. Between two ranks there may be several channels.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "05_ranks/rank.hpp"

namespace ddp {

// One end of a channel. Messages arrive in order, and are counted from 0 on.
class Wire {
  public:
    virtual ~Wire() = default;
    // Begins to send `bytes`, or to receive no more than that. `data` must stay until the message
    // is done.
    virtual void begin(std::byte* data, std::size_t bytes) = 0;
    // Moves what can be moved, and returns how many messages are done. Never waits. Throws
    // std::runtime_error if the wire has broken.
    virtual std::uint64_t done() = 0;
};

// When a send is done: as soon as its data may be written again, or when the receiver has it.
enum class SendIsDone { data_is_free, receiver_has_it };

// Used by one thread at a time, with all of its wires. They live as long as it does.
class Transport {
  public:
    virtual ~Transport() = default;
    virtual Wire& wire_to(int rank, int channel, SendIsDone when) = 0;
    virtual Wire& wire_from(int rank, int channel) = 0;
    // Sleeps until one of the wires can go on, but no longer than `most`.
    virtual void wait(std::chrono::nanoseconds most) = 0;
};

// TCP as a transport (socket_transport.cpp). All ranks call this together.
std::unique_ptr<Transport> make_socket_transport(Rank& rank);

}  // namespace ddp
