#pragma once
// Runs one test case of this very program in a process of its own, for what ends a process: a
// crash, a leak report at exit, kill -9. The case is hidden (tag "[.child]") so that a plain run
// passes over it.
#include <string>
#include <vector>

namespace ddp::test {

struct ChildResult {
    int exit_code = 0;   // -1 if a signal ended it
    int signal = 0;      // 0 if it ended by itself
    std::string output;  // stdout and stderr together
};

// Runs the hidden test case `name` of this program; `environment` holds "NAME=value" entries that
// are added to this process's own. The child is killed after `timeout_s` seconds, and the result
// says signal 9.
ChildResult run_child(const std::string& name, const std::vector<std::string>& environment = {},
                      int timeout_s = 60);

// Runs any command like run_child. command[0] is looked up on PATH.
ChildResult run_command(const std::vector<std::string>& command,
                        const std::vector<std::string>& environment = {}, int timeout_s = 60);

// Whether limits of processes and threads can be tried: root has none, and runs the program as a
// user that nobody else is.
bool user_limits_count();
// Runs a program of ours as that user, who may have so many processes and threads in all.
ChildResult run_limited(int processes, const std::vector<std::string>& command,
                        const std::vector<std::string>& environment = {});

}  // namespace ddp::test
