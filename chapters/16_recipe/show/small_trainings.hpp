#pragma once
// The small trainings of the tables: clipping, dropout and loss scaling on several ranks, done
// right and done wrong, and what 16-bit products lose.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "16_recipe/dropout.hpp"
#include "16_recipe/grad_scaler.hpp"
#include "common/data/images.hpp"

namespace ddp {

// ---- Beside one device

// One way to train, right or wrong.
struct RecipeVariant {
    std::string name;
    // Called around the average of the gradients; may be absent.
    using Hook = std::function<void(const Rank& rank, const Parameters& parameters)>;
    Hook before_average = {}, after_average = {};
    // The masks of a rank depend on the sample, or on the rank's own generator.
    double dropout = 0;
    bool has_own_masks = false, has_same_seed = false;
};
// Returns the six ways that the chapter shows.
std::vector<RecipeVariant> recipe_variants();

struct RecipeResult {
    double difference = 0;  // from one device with all samples, relative to how far that has moved
    bool are_equal = true;  // the replicas
};

// Trains a small network for `steps` steps, on all ranks together and on one device with the
// samples of all. All ranks call it together.
RecipeResult compare_with_one_device(Rank& rank, const LabelledImages& images,
                                     const RecipeVariant& variant, int steps, std::uint64_t seed);

// ---- Mixed precision

// Where a rank looks for infinity and NaN.
enum class FoundInf { in_the_average, in_its_own, in_its_own_and_asks };

inline constexpr GradScalerOptions without_scaling{.initial_scale = 1, .growth_interval = 1 << 30};

struct MixedVariant {
    std::string products = "float32";  // or float16, bfloat16
    GradScalerOptions scaler = without_scaling;
    FoundInf found_inf = FoundInf::in_the_average;
};

struct MixedResult {
    std::vector<int> skipped;     // steps that each rank has left out
    int steps = 0;                // until the end, or until the replicas differ
    bool are_equal = true;        // the replicas
    double loss = 0;              // mean over the ranks and the last ten steps
    std::vector<float> gradient;  // of the last step: the average, times the scale
};

// Trains an MLP for `steps` steps, or until the replicas differ. All ranks call it together.
MixedResult learn_mixed(Rank& rank, const LabelledImages& images, const MixedVariant& variant,
                        int steps, std::uint64_t seed);

// Returns by exponent e the share of these numbers from 2^e to below 2^(e + 1), with either sign.
std::map<int, double> shares_by_exponent(const std::vector<float>& gradient);

// Returns the share of these numbers that are not 0, and become 0 if they are multiplied by `scale`
// and rounded to float16 or bfloat16.
double share_rounded_to_0(const std::vector<float>& gradient, const std::string& products,
                          float scale);

}  // namespace ddp
