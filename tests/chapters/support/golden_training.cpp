#include "tests/chapters/support/golden_training.hpp"

#include <cmath>

namespace ddp::test {

void set_golden_weights(const Module& model) {
    const Parameters parameters = model.parameters();
    for (std::size_t k = 0; k < parameters.size(); k++) {
        Tensor& value = parameters[k]->value;
        if (parameters[k]->name.starts_with("norm"))
            continue;  // 1 and 0, as they are
        const bool is_bias = parameters[k]->name.ends_with("bias");
        const Tensor& weight = parameters[is_bias ? k - 1 : k]->value;
        value.copy_from(golden_weights(static_cast<std::uint32_t>(k), value.size(),
                                       weight.size() / static_cast<std::size_t>(weight.dim(0))));
    }
}

std::vector<int> part_of(int begin, int end, int rank, int ranks) {
    std::vector<int> part;
    for (int sample = begin + rank; sample < end; sample += ranks)
        part.push_back(sample);
    return part;
}

Batch golden_samples(Device& device, const std::vector<int>& samples, const Shape& picture) {
    const int count = static_cast<int>(samples.size());
    const auto pixels = static_cast<std::uint32_t>(element_count(picture));
    std::vector<float> values;
    std::vector<int> labels;
    for (const int sample : samples) {
        const std::vector<float> one = golden_image(static_cast<std::uint32_t>(sample), pixels);
        values.insert(values.end(), one.begin(), one.end());
        labels.push_back(golden_label(static_cast<std::uint32_t>(sample)));
    }
    Shape shape{count};
    shape.insert(shape.end(), picture.begin(), picture.end());
    return {Tensor(device, shape, values), Labels(device, {count}, labels)};
}

std::string sums_difference(const std::string& name, const Tensor& tensor, const Golden& golden,
                            double tolerance) {
    double sums[2] = {};
    for (const float value : tensor.to_host()) {
        sums[0] += value;
        sums[1] += std::abs(value);
    }
    const std::vector<float>& expected = golden.tensor(name).values;
    for (std::size_t i = 0; i < 2; i++)
        if (!(std::abs(sums[i] - expected[i]) <= 1e-6 + tolerance * expected[1]))
            return name + ": " + std::to_string(sums[i]) + " instead of " +
                   std::to_string(expected[i]);
    return "";
}

}  // namespace ddp::test
