#pragma once
// Predicts what a training under PyTorch would do on ranks that it does not have: its buckets by
// the rules of 14_buckets, and its step by the simulator.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "14_buckets/bucket_plan.hpp"
#include "21_cluster/simulated_all_reduce.hpp"
#include "21_cluster/simulated_training.hpp"

namespace ddp {

// A training on one rank, and the link that more ranks would have.
struct ForeignTraining {
    GradientSizes parameters;
    std::vector<double> times_s;  // of backward, by parameter; none: they share it by their sizes
    double forward_s = 0, backward_s = 0;
    simulator::Link link;
};

// Reads a line for each parameter, as the model lists them: its name, its number of elements, and
// float32, float64, float16 or bfloat16. If each line also has a time, backward is their sum.
// Throws OptionError, with the line, if it is not so.
ForeignTraining read_training(const std::filesystem::path& path);

// bucket_cap_mb, in bytes; none: PyTorch's usual limits.
using BucketCap = std::optional<std::size_t>;

struct PredictedStep {
    BucketCap cap;
    std::size_t buckets = 0;
    double step_s = 0;
    double compute_s = 0;
    double communication_s = 0;  // of all all-reduces, one after the other

    // Returns the share of the communication behind which backward goes on; 1 where there is none.
    double hidden() const {
        return communication_s == 0
                   ? 1
                   : std::max(0.0, 1 - (step_s - compute_s) / communication_s);  // less rounding
    }
};

// Predicts a step of `ranks` ranks, each on a node of its own, which takes the faster one of ring
// and double tree for each bucket. Backward makes the last parameters' gradients first. Each rank
// computes `share` of what one alone has measured.
PredictedStep predict_step(const ForeignTraining& training, int ranks, BucketCap cap,
                           double share = 1);

// Returns the steps of all caps that are worth trying, the usual one first.
std::vector<PredictedStep> predict_caps(const ForeignTraining& training, int ranks);

// Returns the one that is fastest; the first of those that differ by less than 1 %.
const PredictedStep& best_of(const std::vector<PredictedStep>& steps);

// Twice the ranks pay if they are this many times as fast.
inline constexpr double least_gain = 1.5;

// Returns up to how many ranks, doubled from 1 on and at most `most`, each doubling pays: if each
// rank has a batch of its own, or if they share one. The cap is the best for each number.
int ranks_that_pay(const ForeignTraining& training, int most, bool share_one_batch);

}  // namespace ddp
