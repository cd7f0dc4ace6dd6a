#pragma once
// Worlds of threads for tests, and how they fail.
#include <functional>
#include <string>

#include "05_ranks/world.hpp"

namespace ddp::test {

// `ranks` threads of this process.
CommonOptions thread_options(int ranks, double timeout_s = 30);

// The first cause of the run's failure, or "".
std::string failure_of(World& world, const std::function<void(Rank&)>& work);

// Returns when the run has failed: the others have lost their patience with this rank.
void wait_for_failure(Rank& rank);

// Calls `attempt` on all ranks until it is good on rank 0, at most 20 times: a machine with other
// work to do is slower than a simulated link at times, but never faster.
void try_until_good(Rank& rank, const std::function<bool()>& attempt);

bool has(const std::string& text, const std::string& part);

}  // namespace ddp::test
