#pragma once
// The frame of every program's main: exit status, errors and --help.
#include <exception>
#include <functional>
#include <string>

namespace ddp {

// Runs `work` and returns the exit status for main. That is the result of `work` (0, or another
// number if a result is wrong), 2 after an OptionError, and 1 after any other exception; exceptions
// are printed to stderr as "error: <sentence>". --help is printed to stdout, with status 0. If that
// would be the status, but what was printed could not be written, it is 1.
//
//     int main(int argc, char** argv) {
//         return ddp::run_main([&] { return run(parse_options(argc, argv)); });
//     }
int run_main(const std::function<int()>& work);

// Returns what the exception says, or a sentence in its place where that is a word of the library:
// memory or threads have run out.
std::string sentence_of(const std::exception& error);

inline constexpr const char* output_is_lost = "the output could not be written: is the disk full?";

}  // namespace ddp
