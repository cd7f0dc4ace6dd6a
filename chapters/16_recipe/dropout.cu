// Which numbers are dropped, two ranks beside one device (columns are features, . is dropped):
//
//     one device                rank 0 of 2               rank 1 of 2
//     sample 0  x . x x         sample 0  x . x x
//     sample 1  . x x .                                   sample 1  . x x .
//     sample 2  x x . x         sample 2  x x . x
//     sample 3  x . . x                                   sample 3  x . . x
//
// Each number is kept or dropped by a hash of (seed, layer, step, sample, feature). Nothing is
// stored: backward computes the same hash again.
#include "16_recipe/dropout.hpp"

#include <cmath>
#include <stdexcept>

#include "15_overlap/splitmix64.cuh"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

// Everything that a mask depends on. A sample has `rows` rows of `columns` numbers.
struct Mask {
    std::uint64_t key;  // contains seed, layer and step
    int first, stride, rows, columns;
    std::uint32_t dropped;  // of 2^24 numbers
    float scale;            // of the numbers that are kept
};

// Writes mask * from, or adds it. The same kernel serves forward and backward.
__global__ void apply_mask(std::size_t rows, Mask mask, const float* from, float* to,
                           bool accumulate) {
    for (std::size_t row : row_range(rows)) {
        // The row's place in the whole batch of the step.
        const std::size_t sample = mask.first + row / mask.rows * mask.stride;
        const std::size_t place = sample * mask.rows + row % mask.rows;
        for (std::size_t column : column_range(mask.columns)) {
            const std::size_t i = row * mask.columns + column;
            const std::uint64_t random = splitmix64(mask.key, place * mask.columns + column) >> 40;
            const float kept = random < mask.dropped ? 0.0f : mask.scale * from[i];
            to[i] = accumulate ? to[i] + kept : kept;
        }
    }
}

// Returns a number that differs from layer to layer and from step to step.
std::uint64_t key_of(std::uint64_t seed, const std::string& layer, std::uint64_t step) {
    std::uint64_t key = seed;
    for (const char letter : layer)
        key = splitmix64(key, static_cast<unsigned char>(letter));
    return splitmix64(key, step);
}

}  // namespace

void DropoutMasks::begin(const DropoutStep& step) {
    if (step.samples < 1 || step.first < 0 || step.stride < 1)
        throw std::invalid_argument(
            "dropout needs the number of samples in this rank's batch, and the place of its first "
            "one in the whole batch, with a positive distance between them");
    now_ = step;
}

Dropout::Dropout(std::string name, double probability, const DropoutMasks& masks)
    : Module(std::move(name)), probability_(probability), masks_(masks) {
    if (!(probability >= 0 && probability <= 1))
        throw std::invalid_argument(this->name() + " cannot drop with probability " +
                                    std::to_string(probability) + "; it must be from 0 to 1");
}

Variable Dropout::forward(Variable input) {
    if (!is_training() || probability_ == 0)
        return input;
    const Tensor x = input.value();
    const DropoutStep& now = masks_.now();
    const int rows = x.dim(0);
    if (now.samples == 0 || rows % now.samples != 0)
        throw std::logic_error(name() + " got " + to_string(x.shape()) + " for " +
                               std::to_string(now.samples) +
                               " samples: call DropoutMasks::begin with the batch's samples before "
                               "each forward");
    const Mask mask{key_of(masks_.seed(), name(), now.step),
                    now.first,
                    now.stride,
                    rows / now.samples,
                    static_cast<int>(x.size()) / rows,
                    static_cast<std::uint32_t>(std::lround(probability_ * (1 << 24))),
                    probability_ == 1 ? 0.0f : static_cast<float>(1 / (1 - probability_))};
    const auto apply = [rows, mask](const Tensor& from, const Tensor& to, bool accumulate) {
        launch(from.device().stream(), rows_for(rows, mask.columns), apply_mask, rows, mask,
               from.data(), to.data(), accumulate);
    };
    const Tensor y(x.device(), x.shape());
    apply(x, y, false);
    return input.tape->record("dropout", y, {input},
                              [apply](const Tensor& dy, Tape::InputGradients& inputs) {
                                  if (!inputs.is_wanted(0))
                                      return;
                                  const GradientTarget dx = inputs.target(0);
                                  apply(dy, dx.tensor, dx.accumulate);
                              });
}

}  // namespace ddp
