// The exercise skip_together: if a gradient overflows on one rank, no rank steps. Read
// exercises/16_recipe/README.md first.
#include "exercises/16_recipe/skip_together.hpp"

#include <cmath>

namespace ddp {

bool may_step(const std::vector<float>& gradient, const SumOverRanks& sum_over_ranks) {
    // stub: decide
    //: A sum of one number is enough. Which one does a rank bring?
    std::vector<double> found{0};
    for (const float number : gradient)
        if (!std::isfinite(number))
            found[0] = 1;
    sum_over_ranks(found);
    return found[0] == 0;
    // end stub
}

Scale next_scale(const Scale& scale, bool has_stepped, int interval) {
    // stub: rescale
    //: Draw eight steps and their scales first.
    if (!has_stepped)
        return {scale.value / 2, 0};
    if (scale.good_steps + 1 == interval)
        return {scale.value * 2, 0};
    return {scale.value, scale.good_steps + 1};
    // end stub
}

void train_step(const Training& training, Scale& scale, int interval, double max_norm) {
    // stub: whole_step
    //: Which scale did backward have?
    std::vector<float> gradient = training.backward(scale.value);
    const bool steps = may_step(gradient, training.sum_over_ranks);
    if (steps) {
        training.average(gradient);
        double squares = 0;
        for (float& number : gradient) {
            number = static_cast<float>(number / scale.value);
            squares += static_cast<double>(number) * static_cast<double>(number);
        }
        const double norm = std::sqrt(squares);
        for (float& number : gradient)
            if (norm > max_norm)
                number = static_cast<float>(number * max_norm / norm);
        training.step(gradient);
    }
    scale = next_scale(scale, steps, interval);
    // end stub
}

}  // namespace ddp
