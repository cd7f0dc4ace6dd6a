// A rank inside of a program that is not the book's.
#include "05_ranks/coordinator/endpoints.hpp"
#include "05_ranks/support/mpi_start.hpp"
#include "05_ranks/world.hpp"

namespace ddp {

World::World(int rank, int world_size, double timeout_s, const AllGather& all_gather) {
    job_.timeout_s = timeout_s;
    job_.is_guest = true;
    job_.started_by = "another program";
    become_process(rank, world_size);
    // Rank 0 listens for its own node alone. Those of another one learn that before they call.
    const auto node_of = [](const std::string& text) { return text.substr(0, text.find('\n')); };
    find_others_by_broadcast([&](const std::string& text) {
        const std::vector<std::string> all = all_gather(node_name() + "\n" + text);
        const std::string node = node_of(all[0]);
        for (const std::string& each : all)
            if (node_of(each) != node)
                throw OptionError("one rank is on " + node_of(each) + " and rank 0 on " + node +
                                  ": here all ranks must be on one node");
        return all[0].substr(node.size() + 1);
    });
}

}  // namespace ddp
