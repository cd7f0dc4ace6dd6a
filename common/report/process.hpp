#pragma once
// Starting another program: the one way in which this book does it.
//
//     start_process({"mpirun", "-n", "4", "ring"}, {.signal_at_end = SIGTERM})
//     1. fork     a copy of this process: who ends it, where it reads and prints
//     2. execve   the copy becomes the program
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ddp {

// Returns this process's variables as "NAME=value". Each of `added` takes the place of the one that
// has its name.
std::vector<std::string> environment_with(const std::vector<std::string>& added);

// Settings in which a started program differs from this process.
struct ProcessSettings {
    std::vector<std::string> environment = environment_with({});
    // Its stdin, stdout and stderr, as files of this process. -1 stands for /dev/null.
    int input = 0;
    int output = 1;
    int error = 2;
    // A file that stays open in it, by the same number; the book opens all files so that the others
    // are closed.
    int kept = -1;
    // Ends it when the thread that has started it ends, be it by kill -9. 0: it goes on alone.
    int signal_at_end = 0;
    // Gives it a process group of its own: Ctrl-C does not reach it, and kill(-process, ...)
    // reaches it and all that it starts.
    bool leads_group = false;
};

// Starts command[0], which is looked up on PATH unless it has a slash, with the arguments that
// follow. Returns its number, for waitpid. Throws std::runtime_error if no process can be made. A
// program that cannot be started says so on its stderr, and its status is
// status_of_missing_program, as in a shell.
pid_t start_process(const std::vector<std::string>& command, const ProcessSettings& settings = {});
inline constexpr int status_of_missing_program = 127;

// Returns the path of a file of the book, such as "tests/golden/pytorch_train.py". It is searched
// from this program's folder upwards, because build/cpu/bin is inside the book. Returns nothing if
// it is not there.
std::optional<std::filesystem::path> find_in_book(const std::string& file);

// Returns this machine's name.
std::string host_name();

// Returns the exit status for what waitpid has told: 128 and the signal's number for a process that
// a signal has ended, as in a shell.
int exit_status(int wait_status);

}  // namespace ddp
