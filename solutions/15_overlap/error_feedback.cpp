// The exercise error_feedback: the largest elements, and a memory for the others. Read
// exercises/15_overlap/README.md first.
#include "exercises/15_overlap/error_feedback.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ddp {

LargestElements compress(const std::vector<float>& gradient, std::size_t k,
                         std::vector<float>& error) {
    // stub: compress
    //: An element that is not sent must be kept.
    for (std::size_t i = 0; i < gradient.size(); i++)
        error[i] += gradient[i];
    LargestElements sent;
    sent.indices.resize(gradient.size());
    std::iota(sent.indices.begin(), sent.indices.end(), 0);
    std::ranges::stable_sort(sent.indices, std::ranges::greater(),
                             [&](int i) { return std::abs(error[static_cast<std::size_t>(i)]); });
    sent.indices.resize(k);
    std::ranges::sort(sent.indices);
    for (const int i : sent.indices) {
        float& value = error[static_cast<std::size_t>(i)];
        sent.values.push_back(value);
        value = 0;
    }
    return sent;
    // end stub
}

std::vector<float> mean_of(const std::vector<LargestElements>& sent, std::size_t elements) {
    // stub: mean
    //: A rank that has not sent an element has sent a 0.
    std::vector<float> mean(elements);
    for (const LargestElements& theirs : sent)
        for (std::size_t i = 0; i < theirs.indices.size(); i++)
            mean[static_cast<std::size_t>(theirs.indices[i])] += theirs.values[i];
    for (float& value : mean)
        value /= static_cast<float>(sent.size());
    return mean;
    // end stub
}

double break_even(const CostModel& message, int ranks, std::size_t elements) {
    // stub: break_even
    //: How many bytes does a rank receive in the all-gather?
    const double all_reduce = two_shot_seconds(message, ranks, elements * sizeof(float));
    const double bytes_of_pair = sizeof(int) + sizeof(float);
    return (all_reduce - message.alpha_s) / ((ranks - 1) * bytes_of_pair * message.beta_s_per_byte);
    // end stub
}

}  // namespace ddp
