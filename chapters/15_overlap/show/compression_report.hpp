#pragma once
// The bucket hooks by name, and what each of them saves and loses in a short training.
#include <filesystem>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "15_overlap/ddp.hpp"
#include "15_overlap/power_sgd.hpp"
#include "common/data/images.hpp"

namespace ddp {

// Returns "average", "float16", "bfloat16" and "power_sgd" (of matrix rank 1).
std::vector<std::string> hook_names();
// Makes the hook of that name for a DistributedDataParallel with these gradients; PowerSGD begins
// at `start_step`. Throws std::invalid_argument for an unknown name.
BucketHook make_hook(const std::string& name, Rank& rank, Communicator& communicator,
                     const FlatBuffers& gradients, int start_step = PowerSgdOptions().start_step);
// Returns the arena size, in bytes, that any of these hooks needs beyond ddp_arena_bytes.
std::size_t hook_arena_bytes(const Module& model);

struct HookTraining {
    int steps = 60;
    int start_step = PowerSgdOptions().start_step;  // PowerSGD averages until then
};

// The result of a short training with one hook.
struct HookResult {
    std::size_t bytes = 0;  // passed to all-reduces by a rank in the last step
    double step_error = 0;  // relative error of the last step's gradient
    double sum_error = 0;   // relative error of the sum of all steps' gradients
    double loss = 0;        // mean over the ranks and the last ten steps
};

// Trains the MLP 784-256-256-10 with one hook: a name of hook_names(), "power_sgd 4" or "power_sgd
// 4, no feedback". All ranks call it together.
HookResult learn_with_hook(Rank& rank, const LabelledImages& images, const std::string& name,
                           const HookTraining& training, std::uint64_t seed);

// Compares all of these hooks. Prints on rank 0, and writes to out/overlap_hooks.csv where the
// run's own table `csv` is out/overlap.csv; writes none if `csv` is empty.
void show_hooks(Rank& rank, const LabelledImages& images, const HookTraining& training,
                std::uint64_t seed, const std::filesystem::path& csv);

// Averages three numbers that are the same on all ranks, in 32 and in 16 bits. Prints on rank 0.
void show_short_numbers(Rank& rank);

}  // namespace ddp
