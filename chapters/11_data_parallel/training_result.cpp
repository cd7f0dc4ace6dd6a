#include "11_data_parallel/training_result.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/small_training.hpp"
#include "11_data_parallel/replica.hpp"
#include "common/report/bench.hpp"

namespace ddp {

TrainingResult train(Device& device, Module& model, Loader& loader,
                     const std::function<void()>& average_gradients, double learning_rate) {
    Sgd optimizer(model.parameters(), learning_rate);
    SmallTraining training(device, optimizer);
    const auto backward = [&](Variable loss) {
        loss.tape->backward(loss);
        average_gradients();
    };
    std::vector<Tensor> losses;  // left on the device until the end: reading one would wait for it
    const Stopwatch watch;
    while (const std::optional<Batch> batch = loader.next()) {
        const auto loss_of = [&](Tape& tape) {
            return cross_entropy(model.forward(tape.constant(batch->images)), batch->labels);
        };
        losses.push_back(training.step(loss_of, backward));
    }
    device.stream().synchronize();
    TrainingResult result;
    result.step_s = watch.seconds() / static_cast<double>(losses.size());
    for (const Tensor& loss : losses)
        result.losses.push_back(loss.to_host()[0]);
    result.hash = hash_of(model.parameters());
    return result;
}

std::vector<double> mean_of_ranks(Rank& rank, const std::vector<double>& mine) {
    // Rank's typed exchange is for values of one fixed size; a vector travels as its bytes.
    std::vector<double> sums(mine.size());
    const std::size_t bytes = mine.size() * sizeof(double);
    for (const std::string& each :
         rank.all_gather({reinterpret_cast<const char*>(mine.data()), bytes})) {
        std::vector<double> theirs(mine.size());
        if (each.size() != bytes)
            throw std::runtime_error(
                "a mean over the ranks needs the same number of values from each");
        std::memcpy(theirs.data(), each.data(), bytes);
        for (std::size_t i = 0; i < sums.size(); i++)
            sums[i] += theirs[i] / rank.world_size();
    }
    return sums;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b,
                          std::size_t steps) {
    double largest = 0;
    for (std::size_t i = 0; i < std::min(steps, a.size()); i++)
        largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

}  // namespace ddp
