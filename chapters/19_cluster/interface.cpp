// A line of /proc/net/dev has the name of an interface and sixteen numbers: eight of what it has
// received, and then eight of what it has sent. The first of each eight are the bytes:
//
//     Inter-|   Receive                            |  Transmit
//      face |bytes    packets ... multicast        |bytes    packets ...
//       eth0: 5271234    3712 ...         0         4215021    3388 ...
#include "19_cluster/interface.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace ddp {

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

Traffic most_between(const SentBytes& before, const SentBytes& after) {
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
