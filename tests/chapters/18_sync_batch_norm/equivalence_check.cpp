#include "tests/chapters/18_sync_batch_norm/equivalence_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "10_nodes/make_communicator.hpp"
#include "18_sync_batch_norm/sync_batch_norm.hpp"
#include "common/data/random.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

constexpr int channels = 5, height = 3, width = 7;
constexpr std::size_t picture = std::size_t{channels} * height * width;

// Returns the loss sum(y * weights), whose gradient is `weights`: one element, whose value is not
// computed, since only its gradient is needed.
Variable weighted(Variable y, const Tensor& weights) {
    Tensor loss(y.tape->device(), {1});
    fill(loss, 0.0f);
    return y.tape->record(
        "weighted", loss, {y}, [weights](const Tensor&, Tape::InputGradients& inputs) {
            const GradientTarget target = inputs.target(0);
            if (weights.size() > 0)
                DDP_CHECK(cudaMemcpyAsync(target.tensor.data(), weights.data(), weights.bytes(),
                                          cudaMemcpyDeviceToDevice, weights.device().stream()));
        });
}

// The results of a layer after two steps.
struct Outcome {
    Values output, running_mean, running_var, input_gradient, weight_gradient, bias_gradient;
};

Outcome take_steps(Device& device, Module& norm, const Values& x, const Values& dy) {
    const Shape shape{static_cast<int>(x.size() / picture), channels, height, width};
    const auto input = std::make_shared<Parameter>("input", Tensor(device, shape, x));
    const Tensor weights(device, shape, dy);
    Tape tape(device);
    Outcome outcome;
    for (int step = 0; step < 2; step++) {
        for (const auto& parameter : norm.parameters())
            parameter->clear_gradient();
        input->clear_gradient();
        const Variable y = norm.forward(tape.parameter(input));
        tape.backward(weighted(y, weights));
        outcome.output = y.value().to_host();
        tape.clear();
    }
    outcome.running_mean = norm.buffers()[0].value.to_host();
    outcome.running_var = norm.buffers()[1].value.to_host();
    outcome.input_gradient = input->gradient().to_host();
    outcome.weight_gradient = norm.parameters()[0]->gradient().to_host();
    outcome.bias_gradient = norm.parameters()[1]->gradient().to_host();
    return outcome;
}

// Returns the largest difference, relative to the largest number of `all_expected`; `expected` is
// this rank's section of that. Infinite if a number is not finite.
double difference(const Values& found, const Values& expected, const Values& all_expected) {
    double largest = 0, scale = 1e-30;
    for (std::size_t i = 0; i < expected.size(); i++) {
        const double distance = std::abs(static_cast<double>(found.at(i)) - expected[i]);
        largest = std::isfinite(distance) ? std::max(largest, distance)
                                          : std::numeric_limits<double>::infinity();
    }
    for (const float value : all_expected)
        scale = std::max<double>(scale, std::abs(value));
    return largest / scale;
}

// Returns the elements from `first` up to `last`, exclusive.
Values section_of(const Values& all, std::size_t first, std::size_t last) {
    return {all.begin() + static_cast<std::ptrdiff_t>(first),
            all.begin() + static_cast<std::ptrdiff_t>(last)};
}

// Returns the sum over the ranks of one number per channel, added up in the order of the ranks.
Values sum_of_ranks(Rank& rank, const Values& mine) {
    std::array<float, channels> own{};
    std::ranges::copy(mine, own.begin());
    Values sum(channels);
    for (const auto& theirs : rank.all_gather(own))
        for (std::size_t i = 0; i < sum.size(); i++)
            sum[i] += theirs[i];
    return sum;
}

std::unique_ptr<BatchNorm2d> make_plain(Device& device, std::uint64_t seed) {
    auto plain = std::make_unique<BatchNorm2d>("norm", device, channels);
    Random random(seed + 1);
    Values weight, bias;
    for (int channel = 0; channel < channels; channel++) {
        weight.push_back(random.uniform(0.5f, 1.5f));
        bias.push_back(random.uniform(-1.0f, 1.0f));
    }
    plain->weight->value.copy_from(weight);
    plain->bias->value.copy_from(bias);
    return plain;
}

// The pictures of all ranks, one rank after the other, and the weight of each output in the loss.
struct Union {
    Values x, dy;
};

Union make_union(const std::vector<int>& counts, std::uint64_t seed) {
    Union all;
    Random random(seed);
    for (std::size_t r = 0; r < counts.size(); r++)
        for (std::size_t i = 0; i < static_cast<std::size_t>(counts[r]) * picture; i++) {
            const auto channel = static_cast<float>(i / (height * width) % channels);
            all.x.push_back(0.5f * static_cast<float>(r) + 0.25f * channel +
                            (1.0f + 0.5f * static_cast<float>(r)) * random.normal());
            all.dy.push_back(random.uniform(-1.0f, 1.0f) + 0.25f * static_cast<float>(r));
        }
    return all;
}

}  // namespace

double Differences::largest() const {
    return std::max({output, running_mean, running_var, input_gradient, parameter_gradients});
}

std::unique_ptr<Module> make_sync_batch_norm(std::unique_ptr<BatchNorm2d> plain,
                                             Communicator& communicator) {
    return std::make_unique<SyncBatchNorm>(std::move(plain), communicator);
}

Differences compare_with_union(Device& device, Communicator& communicator, const MakeNorm& make,
                               const std::vector<int>& counts, std::uint64_t seed) {
    Rank& rank = communicator.rank();
    const auto mine = counts.begin() + rank.rank();
    const auto first = static_cast<std::size_t>(std::accumulate(counts.begin(), mine, 0)) * picture;
    const auto last = first + static_cast<std::size_t>(*mine) * picture;
    const Union all = make_union(counts, seed);
    const auto plain = make_plain(device, seed);
    const Outcome one = take_steps(device, *plain, all.x, all.dy);
    const auto norm = make(make_plain(device, seed), communicator);
    const Outcome own =
        take_steps(device, *norm, section_of(all.x, first, last), section_of(all.dy, first, last));
    communicator.synchronize(device.stream());  // throws if a collective has failed
    const auto whole = [&](const Values& found, const Values& expected) {
        return rank.max_over_ranks(difference(found, expected, expected));
    };
    const auto section = [&](const Values& found, const Values& expected) {
        return rank.max_over_ranks(difference(found, section_of(expected, first, last), expected));
    };
    Differences result;
    result.output = section(own.output, one.output);
    result.running_mean = whole(own.running_mean, one.running_mean);
    result.running_var = whole(own.running_var, one.running_var);
    result.input_gradient = section(own.input_gradient, one.input_gradient);
    result.parameter_gradients =
        std::max(whole(sum_of_ranks(rank, own.weight_gradient), one.weight_gradient),
                 whole(sum_of_ranks(rank, own.bias_gradient), one.bias_gradient));
    return result;
}

std::vector<std::vector<int>> picture_counts(int ranks) {
    std::vector<int> equal(static_cast<std::size_t>(ranks), 4), unequal, one_empty = equal;
    for (int r = 0; r < ranks; r++)
        unequal.push_back(1 + 2 * r);
    if (ranks > 1)
        one_empty.back() = 0;
    return {equal, unequal, one_empty};
}

}  // namespace ddp::test
