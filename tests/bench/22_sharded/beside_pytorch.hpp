#pragma once
// This chapter's steps beside those of PyTorch's fully_shard, in the same run.
#include <filesystem>
#include <optional>
#include <string>

#include "common/report/options.hpp"
#include "tests/bench/10_nodes/benchmark_subprocess.hpp"

namespace ddp {

// Starts PyTorch, to be measured later. `pytorch` is "off", "auto" for the first python3 that has a
// PyTorch with fully_shard, or an interpreter. Returns nothing if none is wanted, or if none is
// found; throws OptionError if that interpreter has none.
std::optional<BenchmarkSubprocess> start_fully_shard(const std::string& pytorch, int ranks);

// Trains the perceptron of the bench at stages 1 and 3, in turn with PyTorch, prints a step of each
// and how many times as fast this book is, and writes them to `csv`. Without PyTorch it says so.
void show_beside_pytorch(std::optional<BenchmarkSubprocess> pytorch, int rounds,
                         CommonOptions common, const std::filesystem::path& csv);

}  // namespace ddp
