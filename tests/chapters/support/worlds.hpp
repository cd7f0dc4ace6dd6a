#pragma once
// Worlds of threads for tests, and how they fail.
#include <functional>
#include <string>

#include "05_ranks/world.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {

// Returns the options for `ranks` threads of this process.
CommonOptions thread_options(int ranks, double timeout_s = 30);

// Returns the first cause of the run's failure, or "". Throws std::logic_error if another process
// is to report it.
std::string failure_of(World& world, const std::function<void(Rank&)>& work);

// Returns once the run has failed, because the other ranks timed out in waiting for this one.
void wait_for_failure(Rank& rank);

// Calls `attempt` on all ranks until it returns true on rank 0, at most 20 times: a machine with
// other work to do is slower than a simulated link at times, but never faster.
void try_until_good(Rank& rank, const std::function<bool()>& attempt);

}  // namespace ddp::test
