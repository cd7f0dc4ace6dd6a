#pragma once
// Gloo as a candidate in the comparison of all-reduces.
#include <memory>
#include <string>

#include "tests/bench/09_all_reduce/candidates.hpp"

namespace ddp {

// The all-reduces of Gloo, by the interpreter `python`, which must have PyTorch: each rank starts
// gloo.py as a process of its own. Throws OptionError if they do not meet. All ranks of a job on
// several nodes call it together.
std::shared_ptr<Candidate> make_gloo_candidate(Rank& rank, const std::string& python);

}  // namespace ddp
