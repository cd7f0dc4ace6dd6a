#pragma once
// Counts the bytes that this host has sent, and by which interface: the only proof of what a
// collective puts on the network.
#include <cstdint>
#include <map>
#include <string>

namespace ddp {

// Bytes sent so far, by interface: those of /proc/net/dev (proc(5)), without the loopback.
using SentBytes = std::map<std::string, std::uint64_t>;

// Reads them. Throws std::runtime_error if the system does not tell.
SentBytes sent_bytes();

// Returns the interface that has sent most between `before` and `after`, and how much; an empty
// name if none has sent anything.
struct Traffic {
    std::string interface;
    std::uint64_t bytes = 0;
};
Traffic most_between(const SentBytes& before, const SentBytes& after);

}  // namespace ddp
