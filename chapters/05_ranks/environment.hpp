#pragma once
// Who am I? How this process was started, and the variables in its environment that say which rank
// of which job it is.
#include <optional>
#include <string>

#include "05_ranks/rendezvous.hpp"
#include "common/report/options.hpp"

namespace ddp {

// The most ranks that may be asked for on one machine: a larger number is taken for a mistake.
inline constexpr int max_ranks = 64;

// The starter of this process: none that sets variables; our launcher, torchrun or you, who set
// RANK and WORLD_SIZE; mpirun or srun, whose processes find each other by MPI.
enum class StartedBy { none, variables, mpi };

// The values of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which every starter of a job sets
// that is not MPI.
struct LaunchVariables {
    int rank = 0;
    int world_size = 1;
    RendezvousEndpoint endpoint;
    std::string loopback;  // where rank 0 listens; empty: at every network of its node
    int listener = -1;     // DDP_LISTENER: rank 0's listening socket, inherited from our launcher
    // Not empty if torchrun's agent listens at the endpoint: where rank 0 is, its store has under
    // this key.
    std::string store_key;
};

// Returns how this process was started. Throws OptionError if that contradicts the options, or if
// srun was called in a way that leaves every process alone.
StartedBy find_starter(const CommonOptions& options);

// Throws OptionError if one of the variables is missing or is not a number.
LaunchVariables read_launch_variables();

// Returns a random word that no other job has.
std::string new_job_name();

// Returns whether this process should print what is wrong with the command line: all processes of a
// job have the same one, and only rank 0 prints it. But what is wrong with its own variables no
// other process knows.
bool prints_refusals();

// Returns the name of this node. Ranks whose nodes have the same name share memory. Where names do
// not show that (containers often have the same name everywhere, or each its own), set DDP_NODE.
std::string node_name();

// Starts this program N times if --processes N asks for it, prints what the ranks print, and
// returns the exit status when all have ended: 0 if all of them returned 0. Without --processes,
// and in the ranks themselves, returns nothing, and the program goes on. In launcher.cpp.
//
//     if (const std::optional<int> status = launch_processes(common, argv))
//         return *status;
//     World world(common);
std::optional<int> launch_processes(const CommonOptions& options, char** argv);

}  // namespace ddp
