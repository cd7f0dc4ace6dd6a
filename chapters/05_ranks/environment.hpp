#pragma once
// Who am I? How this process was started, and what it was told of the job that it belongs to.
#include <optional>
#include <string>

#include "05_ranks/rendezvous.hpp"
#include "common/report/options.hpp"

namespace ddp {

// More ranks than this are somebody's typing error, on one machine.
inline constexpr int most_ranks = 64;

enum class StartedBy { nobody, variables, mpi };

// What RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say: our launcher and torchrun set them, and
// so may you.
struct LaunchVariables {
    int rank = 0;
    int world_size = 1;
    RendezvousEndpoint place;
    int listener = -1;  // our launcher has handed down rank 0's listening socket
};

// How this process was started. Throws OptionError where that and what was asked for contradict
// each other, or where srun has left every process believing that it is alone.
StartedBy find_starter(const CommonOptions& options);

// Throws OptionError if one of them is missing or is no number.
LaunchVariables read_launch_variables();

// Where --processes N asks for it, starts this program N times, passes on what the ranks print, and
// returns the exit status when all have ended: 0 if every one of them has returned 0. Otherwise,
// and in the ranks themselves, returns nothing: the program goes on as one of them.
//
//     if (const std::optional<int> status = launch_processes(common, argv))
//         return *status;
//     World world(common);
std::optional<int> launch_processes(const CommonOptions& options, char** argv);

}  // namespace ddp
