#include "tools/cluster/where.hpp"

#include <algorithm>
#include <iostream>

#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

Table table_of_places(const Job& job, const std::vector<RankPlace>& places) {
    Table table("Where the ranks are (started by: " + job.started_by + ")",
                {"rank", "node", "may run on cores", "device"});
    for (std::size_t r = 0; r < places.size(); r++)
        table.row(
            {std::to_string(r), places[r].node,
             text_of_cores(places[r].cores) + " of " + std::to_string(places[r].cores_of_machine),
             places[r].device});
    return table;
}

Table table_of_networks(const std::vector<NodeNetwork>& networks) {
    Table table(
        "What an all-reduce of " + format_bytes(static_cast<double>(watched_bytes)) + " has sent",
        {"node", "its name leads to", "address", "which has sent", "must leave the node"});
    for (const NodeNetwork& each : networks)
        table.row({each.node, each.interface.empty() ? "-" : each.interface,
                   each.address.empty() ? "-" : each.address,
                   format_bytes(static_cast<double>(each.sent)),
                   format_bytes(each.expected_bytes)});
    return table;
}

// Writes a row for each rank, with the network of its node.
void write_rows(const std::vector<RankPlace>& places, const std::vector<NodeNetwork>& networks,
                CsvWriter& file) {
    for (std::size_t r = 0; r < places.size(); r++) {
        const auto network = std::ranges::find(networks, places[r].node, &NodeNetwork::node);
        const bool is_there = network != networks.end();
        file.row({r, places[r].node, text_of_cores(places[r].cores), places[r].device,
                  is_there ? network->interface : "",
                  is_there ? CsvCell(network->sent) : CsvCell(""),
                  is_there ? CsvCell(network->expected_bytes) : CsvCell("")});
    }
}

}  // namespace

std::vector<std::string> where_columns() {
    return {"rank", "node", "cores", "device", "interface", "sent_bytes", "expected_bytes"};
}

bool report_where(const Job& job, const std::vector<RankPlace>& places,
                  const std::vector<NodeNetwork>& networks, CsvWriter& file) {
    write_rows(places, networks, file);
    std::cout << table_of_places(job, places) << "\n";
    if (networks.empty())
        std::cout << "All ranks are on one node: nothing crosses a network.\n";
    else
        std::cout << table_of_networks(networks);
    for (const NodeNetwork& network : networks)
        if (const std::string problem = wrong_network(network); !problem.empty())
            std::cout << problem << "\n";
    const std::string problem = shared_core(places);
    std::cout << std::flush;  // the error stands below the tables
    if (!problem.empty())
        std::cerr << "error: " + problem + "\n";  // one piece: mpirun carries pieces apart
    return problem.empty();
}

}  // namespace ddp
