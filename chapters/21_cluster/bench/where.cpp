#include "21_cluster/bench/where.hpp"

#include <netdb.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>

#include "05_ranks/support/interfaces.hpp"
#include "10_nodes/make_communicator.hpp"
#include "10_nodes/placement.hpp"
#include "10_nodes/traffic.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr std::size_t watched_bytes = 1 << 20;  // of the all-reduce that the interfaces count

// ---- Names and addresses

// Returns the addresses that `host` has on this host, with spaces between them; "" if its name
// leads nowhere.
std::string addresses_by_name(const std::string& host) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0)
        return "";
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
    std::string addresses;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next)
        addresses += text_of_address(each->ai_addr) + " ";
    return addresses;
}

// Finds the interface of this host that has one of the `addresses`.
void find_interface(const std::string& addresses, HostNetwork& network) {
    std::istringstream words(addresses);
    const std::vector<std::string> wanted{std::istream_iterator<std::string>(words), {}};
    if (!wanted.empty())
        network.address = wanted[0];
    for (const Interface& each : interfaces_of_host())
        for (const std::string& address : each.addresses)
            if (std::ranges::count(wanted, address) != 0) {
                network.address = address;
                network.interface = each.name;
                return;
            }
}

// ---- One all-reduce, and who has sent what

// Returns the bytes that each interface of this host has sent during an all-reduce of all ranks.
SentBytes sent_in_all_reduce(Rank& rank, const AllReduceOrder& order) {
    const auto communicator =
        make_communicator("native", rank, 2 * watched_bytes, {.order = order});
    ArenaBuffer<float> numbers = communicator->allocate<float>(watched_bytes / sizeof(float));
    Stream stream;
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

// ---- What a rank tells the others: a line, with tabs between the fields

std::string line_of(const HostNetwork& network) {
    std::ostringstream line;
    line << network.host << '\t' << network.address << '\t' << network.interface << '\t'
         << network.sent << '\t' << network.most.interface << '\t' << network.most.bytes;
    return line.str();
}

HostNetwork network_of_line(const std::string& line, double expected_bytes) {
    std::istringstream words(line);
    HostNetwork network;
    std::string sent, most;
    for (std::string* field : {&network.host, &network.address, &network.interface, &sent,
                               &network.most.interface, &most})
        std::getline(words, *field, '\t');
    network.sent = std::stoull(sent);
    network.most.bytes = std::stoull(most);
    network.expected_bytes = expected_bytes;
    return network;
}

std::string line_of(const RankPlace& place) {
    std::string line =
        place.machine + '\t' + std::to_string(place.cores_of_machine) + '\t' + place.device + '\t';
    for (const int core : place.cores)
        line += std::to_string(core) + ' ';
    return line;
}

RankPlace place_of_line(const std::string& line) {
    std::istringstream words(line);
    RankPlace place;
    std::string cores_of_machine;
    for (std::string* field : {&place.machine, &cores_of_machine, &place.device})
        std::getline(words, *field, '\t');
    place.cores_of_machine = std::stoi(cores_of_machine);
    place.cores.assign(std::istream_iterator<int>(words), {});
    return place;
}

// ---- Tables

Table table_of_places(const Job& job, const std::vector<RankPlace>& places) {
    Table table("Where the ranks are (started by: " + job.started_by + ")",
                {"rank", "host", "may run on cores", "device"});
    for (std::size_t r = 0; r < places.size(); r++)
        table.row(
            {std::to_string(r), places[r].host,
             text_of_cores(places[r].cores) + " of " + std::to_string(places[r].cores_of_machine),
             places[r].device});
    return table;
}

Table table_of_networks(const std::vector<HostNetwork>& networks) {
    Table table(
        "What an all-reduce of " + format_bytes(static_cast<double>(watched_bytes)) + " has sent",
        {"host", "its name leads to", "address", "which has sent", "must leave the host"});
    for (const HostNetwork& each : networks)
        table.row({each.host, each.interface.empty() ? "-" : each.interface,
                   each.address.empty() ? "-" : each.address,
                   format_bytes(static_cast<double>(each.sent)),
                   format_bytes(each.expected_bytes)});
    return table;
}

}  // namespace

RankPlace place_of_process() {
    RankPlace place;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> place.machine;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        for (int core = 0; core < CPU_SETSIZE; core++)
            if (CPU_ISSET(core, &cores))
                place.cores.push_back(core);
    place.cores_of_machine = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    return place;
}

std::string text_of_cores(const std::vector<int>& cores) {
    std::string text;
    for (std::size_t i = 0; i < cores.size();) {
        std::size_t last = i;
        while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1)
            last++;
        text += (text.empty() ? "" : ",") + std::to_string(cores[i]);
        if (last > i)
            text += "-" + std::to_string(cores[last]);
        i = last + 1;
    }
    return text.empty() ? "not known" : text;
}

std::string shared_core(const std::vector<RankPlace>& places) {
    for (std::size_t b = 0; b < places.size(); b++)
        for (std::size_t a = 0; a < b; a++) {
            const RankPlace &one = places[a], &other = places[b];
            if (one.machine != other.machine || one.cores != other.cores || one.cores.size() != 1 ||
                one.cores_of_machine == 1)
                continue;
            const std::string where = one.host == other.host
                                          ? one.host
                                          : one.host + " and " + other.host + ", one machine";
            return "ranks " + std::to_string(a) + " and " + std::to_string(b) +
                   " are both bound to core " + std::to_string(one.cores[0]) + " of " + where +
                   ", which has " + std::to_string(one.cores_of_machine) +
                   ": they take turns there; start the ranks unbound (mpirun --bind-to none, srun "
                   "--cpu-bind=none), or each on cores of its own.";
        }
    return "";
}

std::string wrong_network(const HostNetwork& network) {
    const auto enough = [&](std::uint64_t bytes) {
        return static_cast<double>(bytes) >= network.expected_bytes / 2;
    };
    if (enough(network.sent))
        return "";
    const std::string& host = network.host;
    if (!enough(network.most.bytes))
        return "No interface of " + host +
               " has sent these bytes: they went past the kernel (as RDMA does), or over the "
               "loopback.";
    const std::string& used = network.most.interface;
    const std::string sent = format_bytes(static_cast<double>(network.most.bytes)) + " have left " +
                             host + " by " + used + ", ";
    if (network.address.empty())
        return sent + "and the other hosts do not know the name " + host +
               ": is this the network that is meant?";
    if (network.interface.empty())
        return sent + "and its name leads to " + network.address +
               ", which none of its interfaces has: is this the network that is meant?";
    return sent + "and its name leads to " + network.interface +
           ": the wrong network? Data goes where the ranks have met: MASTER_ADDR, the address of "
           "rank 0's host in the right one, lets them meet there (mpirun -x MASTER_ADDR=...).";
}

std::vector<RankPlace> gather_places(Rank& rank, RankPlace mine) {
    const int device = rank.select_device();
    cudaDeviceProp properties;
    DDP_CHECK(cudaGetDeviceProperties(&properties, device));
    mine.device = std::to_string(device) + ": " + properties.name;
    std::vector<RankPlace> places;
    for (const std::string& line : rank.all_gather(line_of(mine))) {
        places.push_back(place_of_line(line));
        places.back().host = rank.job().members[places.size() - 1].host;
    }
    return places;
}

std::vector<HostNetwork> watch_network(Rank& rank, const AllReduceOrder& order) {
    const Job& job = rank.job();
    if (!job.has_several_hosts())
        return {};
    const Placement placement = placement_of(Group::all(job), job, rank.rank(), std::nullopt);
    // The first rank of each host speaks for it, and asks for the name of the next host.
    std::vector<std::size_t> speakers;
    for (std::size_t h = 0, first = 0; h < placement.sizes.size(); h++) {
        speakers.push_back(static_cast<std::size_t>(placement.by_host[first]));
        first += static_cast<std::size_t>(placement.sizes[h]);
    }
    const auto mine = static_cast<std::size_t>(
        std::ranges::find(speakers, static_cast<std::size_t>(rank.rank())) - speakers.begin());
    const bool speaks = mine < speakers.size();
    const std::vector<std::string> addresses = rank.all_gather(
        speaks ? addresses_by_name(job.members[speakers[(mine + 1) % speakers.size()]].host) : "");
    const SentBytes sent = sent_in_all_reduce(rank, order);
    HostNetwork network{rank.host(), "", "", 0, most_between({}, sent), 0};
    if (speaks)
        find_interface(addresses[speakers[(mine + speakers.size() - 1) % speakers.size()]],
                       network);
    if (const auto found = sent.find(network.interface); found != sent.end())
        network.sent = found->second;
    const std::vector<std::string> lines = rank.all_gather(line_of(network));
    std::vector<HostNetwork> networks;
    for (const std::size_t speaker : speakers)
        networks.push_back(network_of_line(
            lines[speaker], bytes_leaving_host(placement, order.levels, watched_bytes)));
    return networks;
}

std::vector<std::string> where_columns() {
    return {"rank", "host", "cores", "device", "interface", "sent_bytes", "expected_bytes"};
}

bool report_where(const Job& job, const std::vector<RankPlace>& places,
                  const std::vector<HostNetwork>& networks, CsvWriter& file) {
    for (std::size_t r = 0; r < places.size(); r++) {
        const auto network = std::ranges::find(networks, places[r].host, &HostNetwork::host);
        const bool is_there = network != networks.end();
        file.row({r, places[r].host, text_of_cores(places[r].cores), places[r].device,
                  is_there ? network->interface : "",
                  is_there ? CsvCell(network->sent) : CsvCell(""),
                  is_there ? CsvCell(network->expected_bytes) : CsvCell("")});
    }
    std::cout << table_of_places(job, places) << "\n";
    if (networks.empty())
        std::cout << "All ranks are on one host: nothing crosses a network.\n";
    else
        std::cout << table_of_networks(networks);
    for (const HostNetwork& network : networks)
        if (const std::string problem = wrong_network(network); !problem.empty())
            std::cout << problem << "\n";
    const std::string problem = shared_core(places);
    std::cout << std::flush;  // the error stands below the tables
    if (!problem.empty())
        std::cerr << "error: " + problem + "\n";  // one piece: mpirun carries pieces apart
    return problem.empty();
}

}  // namespace ddp
