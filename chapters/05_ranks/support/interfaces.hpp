#pragma once
// The network interfaces of this node: their addresses, and the bytes that each has sent, which are
// the only proof of what a program puts on the network.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

struct sockaddr;

namespace ddp {

// Returns an address as text, "10.77.0.1"; "" for one that is neither IPv4 nor IPv6.
std::string text_of_address(const sockaddr* address);

// An interface that has an address.
struct Interface {
    std::string name;
    std::vector<std::string> addresses;
};
std::vector<Interface> interfaces_of_node();

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
Traffic max_between(const SentBytes& before, const SentBytes& after);

}  // namespace ddp
