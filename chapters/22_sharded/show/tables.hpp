#pragma once
// The tables of a run: the memory budget of each stage, one training at several stages, its
// timeline, the same in a hybrid, and what becomes of it when ranks are killed.
#include <filesystem>

#include "22_sharded/support/stages.hpp"
#include "common/report/options.hpp"

namespace ddp {

// Prints the bytes that a step of this model needs on each of so many ranks, with the plan's
// optimizer and options. Writes them for 1, 2, 4 and 8 ranks to `csv`.
void show_budget(StageModel& model, const StagePlan& plan, int own_ranks,
                 const std::filesystem::path& csv);

// Trains at each of the stages, and prints on rank 0 what a rank keeps and receives, and the
// hashes. Throws std::runtime_error if these must be the same and are not. All ranks call it
// together.
void show_stages(Rank& rank, const LabelledImages& images, StagePlan plan,
                 const std::vector<int>& stages, const std::filesystem::path& csv);

// Makes some steps of the plan with prefetch and some without, of many samples, over a simulated
// link that takes as long for a step's bytes as the ranks compute; a run over a link keeps its own.
// Draws rank 0's step of median length of each kind, and writes those of all ranks beside
// `common.csv` (out/sharded.csv gives out/sharded_timeline.csv). Says why there is nothing to draw
// with one rank, or on several nodes. All ranks call it together.
void show_timeline(Rank& rank, const LabelledImages& images, StagePlan plan,
                   const CommonOptions& common);

// Prints what a rank of both keeps and receives, and their hashes. The nodes are those of the job,
// or of `order`, which is that of DDP's sums. Throws std::runtime_error if the two end in different
// bits although DDP sums on two levels, and OptionError if the nodes are not of the same size. All
// ranks call it together.
void show_hybrid(Rank& rank, const LabelledImages& images, StagePlan plan,
                 const AllReduceOrder& order, const std::filesystem::path& csv);

// Trains as a supervised job of four ranks: undisturbed; with ranks that are killed, and come
// back; and with one that does not. Throws std::runtime_error if the second one ends in other bits
// than the first.
void show_failover(const StagePlan& plan, const CommonOptions& common);

}  // namespace ddp
