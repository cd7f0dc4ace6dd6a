#pragma once
// Ranks that share a device: whether it can run the kernels of all of them at the same time, as it
// must where kernels wait for one another.
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

struct PeersView;

// The ranks of this node that use this rank's device.
struct SharedDevice {
    std::string address;  // on the PCI bus, which is the same by whatever number a process knows it
    std::vector<int> ranks;   // in order, this rank among them
    bool is_only_one = true;  // all ranks of the node are among them
    int processes = 1;        // in which they are
    int max_ranks = 1;        // on any one device of the node: the same for all of its ranks
};

// Returns this rank's current device, and who shares it. All ranks call it together.
SharedDevice find_shared_device(Rank& rank);

// Returns whether NVIDIA's Multi-Process Service listens in `folder`: then kernels of several
// processes run at the same time on one GPU. Its folder may be there without it.
bool has_mps(const std::string& folder);
// The folder in which it listens unless it was told otherwise.
std::string mps_folder();

// Returns the longest time that a kernel may wait, in seconds, if it may wait for `wanted_s` (0:
// forever). The driver of a GPU that also drives a display ends kernels after some seconds, and
// all that the process has on the device: a wait must end before, to say what it has waited for.
double longest_wait_s(double wanted_s);

// Returns what keeps the kernels of all these ranks from running at the same time, as a sentence
// that says what to do; empty if nothing does.
std::string refusal(const SharedDevice& device, const DeviceLimits& limits,
                    bool processes_take_turns, bool has_link);

// Returns this rank's current device. Throws OptionError with that sentence. All ranks call it
// together. `has_link`: over a simulated link.
SharedDevice require_kernels_at_the_same_time(Rank& rank, bool has_link);

// Launches one small kernel for each rank, which meets those of all others, before any kernel that
// matters. Throws std::runtime_error, on all ranks, if they have not met within a second on a GPU,
// or within the job's time-out on a CPU. All ranks of the job call it together; each has opened the
// arenas of the others.
void rehearse(Rank& rank, const PeersView& view);

// Returns the end of a sentence about a device that is too small for its ranks: "start at most 6
// ranks on it.", or that it is too small for any.
std::string how_many_may_start(std::size_t most);

// Returns how many ranks of a node use one of its devices, where they take them in turn
// (Rank::select_device).
int ranks_on_a_device(const Rank& rank);

// Throws OptionError if this process's ranks on the device, with `streams` each on which kernels
// wait and one on which they compute, have more streams than the device has queues, or if all the
// streams of the process are more: a copy behind a kernel that waits for its rank never begins.
void require_queues(const Rank& rank, std::size_t streams);

}  // namespace ddp
