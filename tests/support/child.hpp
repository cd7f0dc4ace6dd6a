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

}  // namespace ddp::test
