// A line of /proc/net/dev has the name of an interface and sixteen numbers: eight of what it has
// received, and then eight of what it has sent. The first of each eight are the bytes:
//
//     Inter-|   Receive                            |  Transmit
//      face |bytes    packets ... multicast        |bytes    packets ...
//       eth0: 5271234    3712 ...         0         4215021    3388 ...
#include "05_ranks/support/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace ddp {

std::string text_of_address(const sockaddr* address) {
    char text[INET6_ADDRSTRLEN] = "";
    if (address != nullptr && address->sa_family == AF_INET)
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
                  sizeof text);
    else if (address != nullptr && address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
                  sizeof text);
    return text;
}

// The system lists an interface once for each of its addresses.
std::vector<Interface> interfaces_of_node() {
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0)
        return {};
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
    std::vector<Interface> interfaces;
    for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
        const std::string address = text_of_address(each->ifa_addr);
        if (address.empty())
            continue;
        auto found = std::ranges::find(interfaces, each->ifa_name, &Interface::name);
        if (found == interfaces.end())
            found = interfaces.insert(found, {each->ifa_name, {}});
        found->addresses.push_back(address);
    }
    return interfaces;
}

SentBytes sent_bytes() {
    std::ifstream file("/proc/net/dev");
    SentBytes sent;
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos)
            continue;  // a headline
        std::string name;
        std::istringstream(line.substr(0, colon)) >> name;
        std::istringstream numbers(line.substr(colon + 1));
        std::uint64_t number = 0;
        for (int i = 0; i < 9; i++)  // the ninth is the first of those sent
            numbers >> number;
        if (!numbers)
            throw std::runtime_error("/proc/net/dev has a line that cannot be read: " + line);
        if (name != "lo")
            sent[name] = number;
    }
    if (file.bad() || !file.eof())
        throw std::runtime_error("/proc/net/dev, which has the bytes sent, cannot be read");
    return sent;
}

Traffic max_between(const SentBytes& before, const SentBytes& after) {
    Traffic most;
    for (const auto& [name, bytes] : after) {
        const auto earlier = before.find(name);
        const std::uint64_t sent = bytes - (earlier == before.end() ? 0 : earlier->second);
        if (sent > most.bytes)
            most = {name, sent};
    }
    return most;
}

}  // namespace ddp
