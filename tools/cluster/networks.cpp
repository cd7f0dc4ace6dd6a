// One all-reduce, and what the interfaces of each node have sent meanwhile. The first rank of a
// node speaks for it. What address a node has, another one must say: its own name may lead to its
// loopback there. With three nodes:
//
//     speaker of node 0   asks for node 1's name    10.77.0.2    which of node 1's interfaces?
//     speaker of node 1   asks for node 2's name    10.77.0.3    which of node 2's interfaces?
//     speaker of node 2   asks for node 0's name    10.77.0.1    which of node 0's interfaces?
#include "tools/cluster/networks.hpp"

#include <netdb.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <sstream>

#include "10_nodes/make_communicator.hpp"
#include "10_nodes/placement.hpp"
#include "10_nodes/traffic.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// ---- Names and addresses

// Returns the addresses that `node` has on this node, with spaces between; "" if there are none.
std::string addresses_by_name(const std::string& node) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(node.c_str(), nullptr, &hints, &found) != 0)
        return "";
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
    std::string addresses;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next)
        addresses += text_of_address(each->ai_addr) + " ";
    return addresses;
}

// Finds the interface of this node that has one of the `addresses`.
void find_interface(const std::string& addresses, NodeNetwork& network) {
    std::istringstream words(addresses);
    const std::vector<std::string> wanted{std::istream_iterator<std::string>(words), {}};
    if (!wanted.empty())
        network.address = wanted[0];
    for (const Interface& each : interfaces_of_node())
        for (const std::string& address : each.addresses)
            if (std::ranges::count(wanted, address) != 0) {
                network.address = address;
                network.interface = each.name;
                return;
            }
}

// ---- One all-reduce, and who has sent what

// Returns the bytes that each interface of this node has sent during an all-reduce of all ranks.
SentBytes sent_in_all_reduce(Rank& rank, const AllReduceOrder& order) {
    const auto communicator =
        make_communicator("native", rank, 2 * watched_bytes, {.order = order});
    ArenaBuffer<float> numbers = communicator->allocate<float>(watched_bytes / sizeof(float));
    Stream stream;
    rank.barrier();
    DDP_CHECK(cudaMemsetAsync(numbers.data(), 0, watched_bytes, stream));
    const auto all_reduce = [&] {
        communicator->all_reduce(numbers.data(), numbers.data(), numbers.size(), ReduceOp::sum,
                                 stream, "watched");
        communicator->synchronize(stream);
        rank.barrier();
    };
    all_reduce();  // connections are made
    const SentBytes before = sent_bytes();
    all_reduce();
    SentBytes sent = sent_bytes();
    for (auto& [name, bytes] : sent)
        if (const auto earlier = before.find(name); earlier != before.end())
            bytes -= earlier->second;
    rank.barrier();
    return sent;
}

// ---- What a speaker sends to the others: a line, with tabs between the fields

std::string line_of_network(const NodeNetwork& network) {
    std::ostringstream line;
    line << network.node << '\t' << network.address << '\t' << network.interface << '\t'
         << network.sent << '\t' << network.most.interface << '\t' << network.most.bytes;
    return line.str();
}

NodeNetwork network_of_line(const std::string& line, double expected_bytes) {
    std::istringstream words(line);
    NodeNetwork network;
    std::string sent, most;
    for (std::string* field : {&network.node, &network.address, &network.interface, &sent,
                               &network.most.interface, &most})
        std::getline(words, *field, '\t');
    network.sent = std::stoull(sent);
    network.most.bytes = std::stoull(most);
    network.expected_bytes = expected_bytes;
    return network;
}

// ---- One rank for each node

// Returns the first rank of each node.
std::vector<std::size_t> speakers_of(const Placement& placement) {
    std::vector<std::size_t> speakers;
    std::size_t first = 0;
    for (const int size : placement.sizes) {
        speakers.push_back(static_cast<std::size_t>(placement.by_node[first]));
        first += static_cast<std::size_t>(size);
    }
    return speakers;
}

// Returns the addresses that this rank's node has on another node; "" if another rank speaks for
// it. All ranks call it together.
std::string addresses_elsewhere(Rank& rank, const std::vector<std::size_t>& speakers) {
    const std::size_t count = speakers.size();
    const auto mine = static_cast<std::size_t>(
        std::ranges::find(speakers, static_cast<std::size_t>(rank.rank())) - speakers.begin());
    const bool speaks = mine < count;
    std::string next;  // the addresses of the next speaker's node
    if (speaks)
        next = addresses_by_name(rank.job().members[speakers[(mine + 1) % count]].node);
    const std::vector<std::string> found = rank.all_gather(next);
    return speaks ? found[speakers[(mine + count - 1) % count]] : "";
}

// Returns the network of this rank's node, by its addresses and by what was sent.
NodeNetwork own_network(const std::string& node, const std::string& addresses,
                        const SentBytes& sent) {
    NodeNetwork network{node, "", "", 0, max_between({}, sent), 0};
    find_interface(addresses, network);
    if (const auto found = sent.find(network.interface); found != sent.end())
        network.sent = found->second;
    return network;
}

}  // namespace

std::string wrong_network(const NodeNetwork& network) {
    const auto enough = [&](std::uint64_t bytes) {
        return static_cast<double>(bytes) >= network.expected_bytes / 2;
    };
    if (enough(network.sent))
        return "";
    const std::string& node = network.node;
    if (!enough(network.most.bytes))
        return "No interface of " + node +
               " has sent these bytes: they went past the kernel (as RDMA does), "
               "or over the "
               "loopback.";
    const std::string& used = network.most.interface;
    const std::string sent = format_bytes(static_cast<double>(network.most.bytes)) + " have left " +
                             node + " by " + used + ", ";
    if (network.address.empty())
        return sent + "and the other nodes do not know the name " + node +
               ": is this the network that is meant?";
    if (network.interface.empty())
        return sent + "and its name leads to " + network.address +
               ", which none of its interfaces has: is this the network that is "
               "meant?";
    return sent + "and its name leads to " + network.interface +
           ": the wrong network? Data goes where the ranks have met: "
           "MASTER_ADDR, the address of "
           "rank 0's node in the right one, lets them meet there (mpirun -x "
           "MASTER_ADDR=...).";
}

std::vector<NodeNetwork> watch_network(Rank& rank, const AllReduceOrder& order) {
    const Job& job = rank.job();
    if (!job.has_several_nodes())
        return {};
    const Placement placement = placement_of(Group::all(job), job, rank.rank(), std::nullopt);
    const std::vector<std::size_t> speakers = speakers_of(placement);
    const std::string addresses = addresses_elsewhere(rank, speakers);
    const SentBytes sent = sent_in_all_reduce(rank, order);
    const std::vector<std::string> lines =
        rank.all_gather(line_of_network(own_network(rank.node(), addresses, sent)));
    const double expected_bytes = bytes_leaving_node(placement, order.levels, watched_bytes);
    std::vector<NodeNetwork> networks;
    for (const std::size_t speaker : speakers)
        networks.push_back(network_of_line(lines[speaker], expected_bytes));
    return networks;
}

}  // namespace ddp
