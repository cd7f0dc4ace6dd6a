#include "tests/chapters/support/optimizers.hpp"

#include "tests/chapters/support/gradients.hpp"

namespace ddp::test {
namespace {

constexpr std::size_t step_count = 10;

// Row `step` of a tensor that holds one for each step.
GoldenTensor row_of(const GoldenTensor& all, std::size_t step) {
    const std::size_t size = all.values.size() / step_count;
    const auto first = all.values.begin() + static_cast<std::ptrdiff_t>(step * size);
    return {{all.shape.begin() + 1, all.shape.end()},
            {first, first + static_cast<std::ptrdiff_t>(size)}};
}

}  // namespace

std::string optimizer_difference(Device& device, const std::string& file,
                                 const MakeOptimizer& make) {
    const Golden golden = read_golden(file);
    Parameters parameters;
    for (const std::string k : {"0", "1"})
        parameters.push_back(std::make_shared<Parameter>(
            "parameter" + k, tensor_of(device, golden.tensor("parameter" + k))));
    const std::unique_ptr<Optimizer> optimizer = make(parameters, golden);
    for (std::size_t step = 0; step < step_count; step++) {
        for (std::size_t k = 0; k < 2; k++)
            parameters[k]->gradient_for_writing().copy_from(
                row_of(golden.tensor("gradients" + std::to_string(k)), step).values);
        optimizer->step();
        optimizer->zero_gradients();
        for (std::size_t k = 0; k < 2; k++) {
            const std::string difference = worst_difference(
                parameters[k]->value.to_host(),
                row_of(golden.tensor("after" + std::to_string(k)), step), 2e-6, 1e-7);
            if (!difference.empty())
                return "step " + std::to_string(step) + ", parameter" + std::to_string(k) + ": " +
                       difference;
        }
    }
    return "";
}

}  // namespace ddp::test
