#pragma once
// The notes of kernels and hosts for the message about a failure.
#include "06_messages/control.hpp"

namespace ddp {

// `stopped`: nothing is wrong here, but a kernel waited when the run failed elsewhere.
enum class Problem : unsigned int { none, being_written, timeout, mismatch, slow_link, stopped };

// The state of a peer's last operation, as far as this rank can see it.
enum class PeerProgress : unsigned int { under_way, over, unknown };

// Says how far a rank's host has come with enqueuing, for a time-out.
enum class HostCall : unsigned int { none, launch, record, wait };
struct HostProgress {
    std::uint64_t enqueued = 0;      // operations
    HostCall call = HostCall::none;  // the CUDA call that it is in
};

// The first error of a rank's kernels, in pinned memory of its process: the only place where host
// and kernels both write while kernels run.
struct DeviceErrorReport {
    unsigned int stop = 0;            // written by the host; 1: the run has failed, end every wait
    Problem problem = Problem::none;  // written by a kernel; the rest explains it
    int peer = -1;                    // the rank that was waited for, or that differs, by number
    OperationRecord mine, theirs;
    PeerProgress their_progress = PeerProgress::over;
    unsigned int have_met = 0;      // written by the rehearsal's kernel; 1: it has met all others
    HostProgress own_host;          // written by the host
    HostProgress hosts[max_peers];  // of all ranks of the process, at the time of the problem
};

}  // namespace ddp
