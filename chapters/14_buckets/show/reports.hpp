#pragma once
// Which gradients travel together? And how large should a bucket be? The time from the beginning of
// backward until the last bucket is reduced, over a simulated link, is predicted and measured.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "09_all_reduce/cost.hpp"
#include "14_buckets/bucket_plan.hpp"

namespace ddp {

// Prints the buckets of three networks, in the first iteration and in all later ones. `cap_bytes`
// as in bucket_limits. Writes a row for each gradient to the file `csv` (empty: none).
void show_plans(std::optional<std::size_t> cap_bytes, std::uint64_t seed,
                const std::filesystem::path& csv);

// ---- The sweep (sweep.cpp)

// Returns the seconds that the Communicator needs for an all-reduce of `bytes`: one latency for few
// bytes (one-shot), two for more (two-shot, 09_all_reduce).
double bucket_seconds(const CostModel& message, int ranks, std::size_t bytes);

// Returns for each bucket when its last gradient is ready, in seconds from the beginning of
// backward, which computes all elements equally fast.
std::vector<double> ready_seconds(const BucketPlan& plan, double backward_s);

// Returns the seconds until the last bucket is reduced: bucket k begins when it is ready and bucket
// k - 1 is done.
double predicted_seconds(const BucketPlan& plan, const CostModel& message, int ranks,
                         double backward_s);

// Measures the same: every rank's thread sleeps until a bucket is ready, as if a device computed,
// and sends it. Returns the seconds of the slowest rank. `memory` holds all buckets. All ranks call
// it together.
double measured_seconds(Peers& peers, ArenaBuffer<float>& memory, const BucketPlan& plan,
                        double backward_s);

// A model's gradients, in the order in which backward computes them.
struct SweptModel {
    std::string name;
    GradientSizes gradients;
};

// Sweeps all `caps` (bytes) for each model and link. The simulated backward takes as long as the
// link needs for the bytes alone. Prints on rank 0, and writes to `csv` (empty: none).
void show_sweep(Rank& rank, const std::vector<SweptModel>& models,
                const std::vector<LinkSpeed>& links, const std::vector<std::size_t>& caps,
                int rounds, const std::filesystem::path& csv);

// Reduces made-up gradients in buckets of `cap` bytes, and returns a hash of the result's bits.
// Throws std::runtime_error if the ranks have different bits.
std::string hash_of_reduced(Rank& rank, const GradientSizes& gradients, std::size_t cap);
// Prints these hashes for several caps, on rank 0.
void show_bits(Rank& rank, const SweptModel& model, const std::vector<std::size_t>& caps);

}  // namespace ddp
