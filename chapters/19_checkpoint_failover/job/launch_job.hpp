#pragma once
// The commands with which a supervisor starts a job, on this machine or on several hosts.
#include <optional>
#include <string>
#include <vector>

namespace ddp {

enum class Launcher { threads, processes, mpirun };

// A machine that ranks may run on.
struct HostSlots {
    std::string name;
    int slots = 1;  // the number of ranks that it takes

    bool operator==(const HostSlots&) const = default;
};

// Parses a list such as "host0,host1:2". Throws OptionError with one sentence.
std::vector<HostSlots> parse_hosts(const std::string& text);

// Returns the hosts that answer within a second: that accept a connection to `port`, or refuse it.
std::vector<HostSlots> hosts_that_answer(const std::vector<HostSlots>& hosts, int port = 22);

// Returns the command that starts this program with `ranks` ranks and `arguments`. With mpirun the
// ranks run on `hosts`, if there are any.
std::vector<std::string> job_command(Launcher launcher, int ranks,
                                     const std::vector<std::string>& arguments,
                                     const std::vector<HostSlots>& hosts = {});

}  // namespace ddp
