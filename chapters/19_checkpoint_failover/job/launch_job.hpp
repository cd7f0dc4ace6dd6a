#pragma once
// The commands with which a supervisor starts a job, on this machine or on several nodes.
#include <optional>
#include <string>
#include <vector>

namespace ddp {

enum class Launcher { threads, processes, mpirun };

// A machine that ranks may run on.
struct NodeSlots {
    std::string name;
    int slots = 1;  // the number of ranks that it takes

    bool operator==(const NodeSlots&) const = default;
};

// Parses a list such as "node0,node1:2". Throws OptionError with one sentence.
std::vector<NodeSlots> parse_nodes(const std::string& text);

// Returns the nodes that answer within a second: that accept a connection to `port`, or refuse it.
std::vector<NodeSlots> nodes_that_answer(const std::vector<NodeSlots>& nodes, int port = 22);

// Returns the command that starts this program with `ranks` ranks and `arguments`. With mpirun the
// ranks run on `nodes`, if there are any.
std::vector<std::string> job_command(Launcher launcher, int ranks,
                                     const std::vector<std::string>& arguments,
                                     const std::vector<NodeSlots>& nodes = {});

}  // namespace ddp
