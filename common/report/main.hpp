#pragma once
// The frame of every program's main: exit status, errors and --help.
#include <functional>

namespace ddp {

// Runs `work` and returns the exit status for main. That is the result of `work` (0, or another
// number if a result is wrong), 2 after an OptionError, and 1 after any other exception; exceptions
// are printed to stderr as "error: <sentence>". --help is printed to stdout, with status 0.
//
//     int main(int argc, char** argv) {
//         return ddp::run_main([&] { return run(parse_options(argc, argv)); });
//     }
int run_main(const std::function<int()>& work);

}  // namespace ddp
