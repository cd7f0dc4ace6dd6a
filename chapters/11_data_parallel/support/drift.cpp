#include "11_data_parallel/support/drift.hpp"

#include <algorithm>
#include <cmath>

namespace ddp {
namespace {

std::size_t largest_of(const Parameters& parameters) {
    std::size_t largest = 0;
    for (const auto& parameter : parameters)
        largest = std::max(largest, parameter->value.size());
    return largest;
}

}  // namespace

Drift::Drift(Communicator& communicator, Device& device, const Module& model)
    : communicator_(communicator),
      device_(device),
      parameters_(model.parameters()),
      of_rank_0_(communicator.allocate<float>(largest_of(parameters_))) {}

double Drift::measure() {
    Stream& stream = device_.stream();
    double difference = 0, whole = 0;
    for (const auto& parameter : parameters_) {
        const Tensor& mine = parameter->value;
        DDP_CHECK(cudaMemcpyAsync(of_rank_0_.data(), mine.data(), mine.bytes(),
                                  cudaMemcpyDeviceToDevice, stream));
        communicator_.broadcast(of_rank_0_.data(), mine.size(), 0, stream, parameter->name);
        communicator_.synchronize(stream);
        const std::vector<float> first =
            Tensor(device_, {static_cast<int>(mine.size())}, of_rank_0_.share()).to_host();
        const std::vector<float> here = mine.to_host();
        for (std::size_t i = 0; i < here.size(); i++) {
            difference += std::pow(here[i] - first[i], 2);
            whole += std::pow(first[i], 2);
        }
    }
    double sum = 0;
    for (const double distance : communicator_.rank().all_gather(std::sqrt(difference / whole)))
        sum += distance;
    // Rank 0's own distance is 0.
    return sum / std::max(1, communicator_.world_size() - 1);
}

}  // namespace ddp
