#pragma once
// What a bucket hook loses, and what it saves: the hooks by name, and a training with each.
#include <filesystem>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "14_overlap/ddp.hpp"
#include "common/data/images.hpp"

namespace ddp {

// "average", "float16", "bfloat16", "power_sgd" (of rank 1).
std::vector<std::string> hook_names();
// For all buckets of a DistributedDataParallel with these gradients. Throws std::invalid_argument
// for another name.
BucketHook make_hook(const std::string& name, Rank& rank, Communicator& communicator,
                     const FlatBuffers& gradients);
// What make_communicator must be given for any of them, beyond ddp_arena_bytes.
std::size_t hook_arena_bytes(const Module& model);

// What is left of a training by one hook.
struct HookResult {
    std::size_t bytes = 0;  // that a rank gives to all-reduces in a step
    double step_error = 0;  // of the last step's gradient, as a part of the average
    double sum_error = 0;   // of the sum of all steps' gradients, likewise
    double loss = 0;        // mean over the ranks, of the last ten steps
};

// The MLP 784-256-256-10 learns for `steps` steps by one of the ways of compare_hooks: a name of
// hook_names(), "power_sgd 4" or "power_sgd 4, no feedback". All ranks call it together.
HookResult learn_with_hook(Rank& rank, const LabelledImages& images, const std::string& name,
                           int steps, std::uint64_t seed);

// All ways in turn. Prints on rank 0, and writes to out/overlap_hooks.csv where the run's own table
// is out/overlap.csv; with an empty path none.
void show_hooks(Rank& rank, const LabelledImages& images, int steps, std::uint64_t seed,
                const std::filesystem::path& csv);

// What becomes of three numbers, the same on all ranks, whose average is taken in 16 bits.
void show_short_numbers(Rank& rank);

}  // namespace ddp
