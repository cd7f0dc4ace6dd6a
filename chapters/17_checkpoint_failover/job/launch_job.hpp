#pragma once
// The commands by which a supervisor starts a job, on this machine and on others.
#include <optional>
#include <string>
#include <vector>

namespace ddp {

enum class Launcher { threads, processes, mpirun };

// A machine that ranks may run on.
struct HostSlots {
    std::string name;
    int slots = 1;  // as many ranks

    bool operator==(const HostSlots&) const = default;
};

// "host0,host1:2". Throws OptionError in a sentence.
std::vector<HostSlots> parse_hosts(const std::string& text);

// Those that are there: a host that takes a connection to `port`, or refuses it, is; one that does
// not answer within a second is not.
std::vector<HostSlots> hosts_that_answer(const std::vector<HostSlots>& hosts, int port = 22);

// This program with `ranks` ranks and `arguments`; by mpirun on `hosts`, if there are any.
std::vector<std::string> job_command(Launcher launcher, int ranks,
                                     const std::vector<std::string>& arguments,
                                     const std::vector<HostSlots>& hosts = {});

}  // namespace ddp
