#include "05_ranks/support/silent_nodes.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "05_ranks/coordinator/connection.hpp"
#include "common/report/process.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr std::size_t longest_line = 1000;  // MPI_Publish_name takes 1,023 bytes
constexpr std::size_t max_named = 3;        // of the nodes, in a sentence

// ---- What this process knows

// Returns the ports of /proc/net/tcp at which one of this process's sockets listens. A line there
// has a number, a local address "00000000:0400", a remote one, a state, which is 0A for a socket
// that listens, five more words, and the number of the socket:
std::vector<std::uint16_t> listening_ports() {
    std::set<std::string> sockets;  // "socket:[4711]"
    std::error_code gone;           // a descriptor may close at any time
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd", gone))
        sockets.insert(std::filesystem::read_symlink(each.path(), gone).string());
    std::vector<std::uint16_t> ports;
    std::ifstream file("/proc/self/net/tcp");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string number, local, remote, state, skipped, socket;
        words >> number >> local >> remote >> state;
        for (int i = 0; i < 5; i++)
            words >> skipped;
        words >> socket;
        if (state == "0A" && sockets.count("socket:[" + socket + "]") != 0)
            ports.push_back(static_cast<std::uint16_t>(
                std::stoul(local.substr(local.find(':') + 1), nullptr, 16)));
    }
    return ports;
}

bool is_ipv4(const std::string& address) {
    return address.find(':') == std::string::npos;
}

// ---- What follows from several reports

const NodeReport* find_sharer(const std::string& address, const std::vector<NodeReport>& nodes) {
    for (const NodeReport& node : nodes)
        if (std::ranges::count(node.networks, address, &NodeReport::Network::address) != 0)
            return &node;
    return nullptr;
}

// Returns the first network of `own` whose address no other node has; the end if there is none.
std::vector<NodeReport::Network>::const_iterator find_own_network(
    const NodeReport& own, const std::vector<NodeReport>& others) {
    return std::ranges::find_if(own.networks, [&](const NodeReport::Network& each) {
        return find_sharer(each.address, others) == nullptr;
    });
}

// Tries all addresses of the others but those that this node has, too. A port is closed if it
// answers at none of them.
ClosedPort find_closed_port(const NodeReport& own, const std::vector<NodeReport>& others) {
    for (const NodeReport& node : others)
        for (const std::uint16_t port : node.ports) {
            const auto opens = [&](const NodeReport::Network& network) {
                return connect_to(network.address, port).number() >= 0;
            };
            std::vector<NodeReport::Network> networks = node.networks;
            std::erase_if(networks, [&](const NodeReport::Network& each) {
                return find_sharer(each.address, {own}) != nullptr;
            });
            if (!networks.empty() && std::ranges::none_of(networks, opens))
                return {node.node, networks[0].address, port};
        }
    return {};
}

// Returns "node1 (10.77.0.2), node2 (10.77.0.3) and 60 more".
std::string names_of(const std::vector<NodeReport>& nodes, const NodeReport& own) {
    std::string names;
    for (std::size_t h = 0; h < std::min(nodes.size(), max_named); h++) {
        const auto network = find_own_network(nodes[h], {own});
        names += (h == 0 ? "" : ", ") + nodes[h].node;
        if (network != nodes[h].networks.end())
            names += " (" + network->address + ")";
    }
    if (nodes.size() > max_named)
        names += " and " + std::to_string(nodes.size() - max_named) + " more";
    return names;
}

std::string names_of_interfaces(const NodeReport& own) {
    std::string names;
    for (const NodeReport::Network& each : own.networks)
        names += (names.empty() ? "" : "/") + each.interface;
    return names.empty() ? "no interface that has an address" : names;
}

std::string table_line(const NodeReport& node) {
    std::string line = "\n    " + node.node + ":";
    for (const NodeReport::Network& each : node.networks)
        line += (line.back() == ':' ? " " : ", ") + each.interface + " (" + each.address +
                ") has sent " + format_bytes(static_cast<double>(each.sent));
    return line;
}

std::string cure_of(const Silence& silence) {
    const auto& [own, others, closed] = silence;
    const auto network = find_own_network(own, others);
    const bool has_own = network != own.networks.end();
    const std::string taken = has_own ? network->interface : "eth0";
    const std::string master =  // rank 0 alone reads it
        own.rank == 0 && has_own ? " MASTER_ADDR=" + network->address : "";
    const std::string name_it = "export OMPI_MCA_btl_tcp_if_include=" + taken + master;
    for (const NodeReport::Network& each : own.networks)
        if (const NodeReport* sharer = find_sharer(each.address, others);
            sharer != nullptr && has_own)
            return each.interface + " is the wrong network: " + own.node + " and " + sharer->node +
                   " have the same address " + each.address +
                   " there, so what is sent to it comes back. Name the right one: " + name_it;
    if (closed.port != 0)
        return own.node + " cannot connect to port " + std::to_string(closed.port) + " of " +
               closed.node + " (" + closed.address +
               "), where a rank listens: is there a firewall? Open the ports of MPI, from 1024 on, "
               "or let it take others: export OMPI_MCA_btl_tcp_port_min_v4=40000";
    return "If the nodes have several networks, name the one that joins them: " + name_it +
           "; if a firewall is between them, open the ports of MPI, from 1024 on.";
}

}  // namespace

NodeReport report_of_node(int rank, const std::string& stopped, const SentBytes& before) {
    NodeReport report{rank, host_name(), stopped, listening_ports(), {}};
    const SentBytes sent = sent_bytes();
    for (const Interface& each : interfaces_of_node()) {
        const auto address = std::ranges::find_if(each.addresses, is_ipv4);
        const auto now = sent.find(each.name), earlier = before.find(each.name);
        if (address != each.addresses.end() && now != sent.end() && earlier != before.end())
            report.networks.push_back({each.name, *address, now->second - earlier->second});
    }
    return report;
}

// "2 <tab> node1 <tab> <tab> 1024 40123 <tab> eth0 10.77.0.2 4711 docker0 172.17.0.1 0"
std::string line_of(const NodeReport& report) {
    std::string line =
        std::to_string(report.rank) + '\t' + report.node + '\t' + report.stopped + '\t';
    for (const std::uint16_t port : report.ports)
        line += std::to_string(port) + ' ';
    line += '\t';
    for (const NodeReport::Network& each : report.networks) {
        const std::string words =
            each.interface + ' ' + each.address + ' ' + std::to_string(each.sent) + ' ';
        if (line.size() + words.size() <= longest_line)
            line += words;
    }
    return line.substr(0, longest_line);
}

NodeReport report_of_line(const std::string& line) {
    NodeReport report;
    std::istringstream fields(line);
    std::string rank, ports, networks;
    for (std::string* field : {&rank, &report.node, &report.stopped, &ports, &networks})
        std::getline(fields, *field, '\t');
    report.rank = std::stoi(rank);
    std::istringstream numbers(ports), words(networks);
    for (std::uint16_t port = 0; numbers >> port;)
        report.ports.push_back(port);
    for (NodeReport::Network each; words >> each.interface >> each.address >> each.sent;)
        report.networks.push_back(each);
    return report;
}

Silence silence_of(const NodeReport& own, const std::vector<std::string>& lines) {
    Silence silence{own, {}, {}};
    for (const std::string& line : lines) {
        const NodeReport other = report_of_line(line);
        if (other.node != own.node &&
            std::ranges::count(silence.others, other.node, &NodeReport::node) == 0)
            silence.others.push_back(other);
    }
    silence.closed = find_closed_port(own, silence.others);
    return silence;
}

std::string to_string(const Silence& silence) {
    for (const NodeReport& node : silence.others)
        if (!node.stopped.empty())
            return node.stopped + " of " + node.node + ", which is stopped";
    std::string text =
        "the other ranks. All were started, but no answer came from " +
        (silence.others.empty() ? "some of them" : names_of(silence.others, silence.own)) + " by " +
        names_of_interfaces(silence.own) + ". Meanwhile" + table_line(silence.own);
    for (const NodeReport& node : silence.others)
        text += table_line(node);
    return text + "\n" + cure_of(silence);
}

}  // namespace ddp
