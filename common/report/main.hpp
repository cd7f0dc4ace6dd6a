#pragma once
// What every program of the book does around its own work.
#include <functional>

namespace ddp {

// Runs `work` and returns its result, the exit status: 0, or another number where a result is
// wrong. What it throws is printed to stderr as "error: <sentence>": 2 is returned for an
// OptionError and 1 for anything else. --help is printed to stdout; 0. To be returned from main:
//
//     int main(int argc, char** argv) {
//         return ddp::run_main([&] { return run(parse_options(argc, argv)); });
//     }
int run_main(const std::function<int()>& work);

}  // namespace ddp
