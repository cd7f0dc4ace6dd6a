#pragma once
// A graph: the work that one capture has noted (capture.hpp), to be launched again and again.
//
// Each stream that was captured is a lane of the graph, and its work stands there in the order of
// the host's calls. A launch gives it to real streams once more:
//
//     lane 0   the launching stream   A ── mark 0 ───────────── B ── wait for mark 1 ── C
//     lane 1   a stream of its own         wait for mark 0 ── D ── mark 1
//
// Lane 0 is whichever stream the graph is launched on. The others belong to what
// cudaGraphInstantiate makes; each begins with a wait for an event of an earlier lane, and so for
// what the launching stream had to do. What stands in a lane between two marks or waits is one
// command of its stream, however many kernels it is: so a launch costs the host little.
#include <cstddef>
#include <memory>
#include <vector>

#include "stream.hpp"

namespace cuda_on_cpu {

struct Graph {
    struct Entry {
        enum class Kind { command, mark, wait };
        Kind kind;
        std::size_t lane;
        std::shared_ptr<Command> command = nullptr;  // of a command
        std::size_t mark = 0;                        // of a wait: the entry that it waits for
    };
    std::vector<Entry> entries;  // in the order of the host's calls
    std::vector<int> devices;    // of each lane's stream

    std::size_t count_commands() const;
};

// Hands a graph to whoever has captured it.
cudaGraph_t make_graph_handle(std::shared_ptr<const Graph> graph);

// Returns what the program has made and not destroyed, a line for each kind; for the end.
std::string graph_leak_report();

}  // namespace cuda_on_cpu
