#pragma once
// How large should a bucket be? The time from the beginning of backward until the last bucket is
// reduced, predicted and measured, over a simulated link.
#include <filesystem>
#include <string>
#include <vector>

#include "09_all_reduce/cost.hpp"
#include "13_buckets/bucket_plan.hpp"

namespace ddp {

// What the Communicator takes for an all-reduce of so many bytes: one meeting for a few, two for
// more (chapter 09).
double bucket_seconds(const CostModel& message, int ranks, std::size_t bytes);

// When each bucket's last gradient is ready, if backward computes all elements equally fast, in
// seconds from its beginning.
std::vector<double> ready_seconds(const BucketPlan& plan, double backward_s);

// Bucket k begins when it is ready and bucket k - 1 is done.
double predicted_seconds(const BucketPlan& plan, const CostModel& message, int ranks,
                         double backward_s);

// The same, measured: every rank's thread sleeps until a bucket is ready, as if a device computed,
// and sends it. From when all ranks are there until the last is done. `memory` holds all buckets.
// All ranks call it together.
double measured_seconds(Peers& peers, ArenaBuffer<float>& memory, const BucketPlan& plan,
                        double backward_s);

// A model's gradients, in the order in which backward has them.
struct SweptModel {
    std::string name;
    GradientSizes gradients;
};

// All caps from a bucket for each gradient to one for all, for each model and link. Backward takes
// as long as the link needs for the bytes alone. Prints on rank 0, and writes to `csv` (empty:
// none).
void show_sweep(Rank& rank, const std::vector<SweptModel>& models,
                const std::vector<LinkSpeed>& links, const std::vector<std::size_t>& caps,
                int rounds, const std::filesystem::path& csv);

// The bits of reduced gradients, by cap: a hash of all of them, on rank 0. Throws
// std::runtime_error if another rank has others.
std::string hash_of_reduced(Rank& rank, const GradientSizes& gradients, std::size_t cap);
void show_bits(Rank& rank, const SweptModel& model, const std::vector<std::size_t>& caps);

}  // namespace ddp
