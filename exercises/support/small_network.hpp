#pragma once
// A network that is quickly trained, and samples for it: for exercises about gradients.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "03_network/cross_entropy.hpp"
#include "03_network/loader.hpp"
#include "03_network/models.hpp"

namespace ddp::test {

inline constexpr int small_inputs = 5, small_classes = 3;

// Draws its weights with this seed.
inline std::unique_ptr<Sequential> make_small_network(Device& device, int seed) {
    Random random(static_cast<std::uint64_t>(seed));
    return make_mlp(device, random, {small_inputs, 8, small_classes});
}

// Returns the samples with these numbers: no two are alike.
inline Batch small_batch(Device& device, const std::vector<int>& samples) {
    std::vector<float> images;
    std::vector<int> labels;
    for (const int sample : samples) {
        for (int k = 0; k < small_inputs; k++)
            images.push_back(std::sin(static_cast<float>(sample * 37 + k * 101)));
        labels.push_back(sample % small_classes);
    }
    const int count = static_cast<int>(samples.size());
    return {Tensor(device, {count, small_inputs}, images), Labels(device, {count}, labels)};
}

// Returns the mean loss of a batch, on `tape`, which it clears.
inline Variable small_loss(Tape& tape, Module& model, const Batch& batch) {
    tape.clear();
    return cross_entropy(model.forward(tape.constant(batch.images)), batch.labels);
}

// Return the numbers of all parameters, one after the other.
inline std::vector<float> all_numbers(const Module& model, const auto& tensor_of) {
    std::vector<float> all;
    for (const auto& parameter : model.parameters())
        for (const float number : tensor_of(*parameter).to_host())
            all.push_back(number);
    return all;
}
inline std::vector<float> values_of(const Module& model) {
    return all_numbers(model, [](const Parameter& one) { return one.value; });
}
inline std::vector<float> gradients_of(const Module& model) {
    return all_numbers(model, [](const Parameter& one) { return one.gradient(); });
}

// Returns whether `numbers` are `factor` times the right ones. NaN is not.
inline bool are_near(const std::vector<float>& numbers, const std::vector<float>& right,
                     float factor = 1) {
    return std::ranges::equal(numbers, right, [&](float number, float one) {
        return std::abs(number - factor * one) <= 1e-5f;
    });
}

}  // namespace ddp::test
