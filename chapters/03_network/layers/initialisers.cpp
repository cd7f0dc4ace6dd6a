#include "03_network/layers/initialisers.hpp"

#include <cmath>
#include <vector>

namespace ddp {

float kaiming_uniform_bound(int fan_in, double a) {
    const double gain = std::sqrt(2.0 / (1.0 + a * a));
    return static_cast<float>(gain * std::sqrt(3.0 / fan_in));
}

Tensor uniform(Device& device, Shape shape, float bound, Random& random) {
    std::vector<float> values(element_count(shape));
    for (float& value : values)
        value = random.uniform(-bound, bound);
    return Tensor(device, std::move(shape), values);
}

std::shared_ptr<Parameter> make_parameter(const std::string& name, Device& device, Shape shape,
                                          int fan_in, Random& random) {
    const float bound = kaiming_uniform_bound(fan_in, std::sqrt(5.0));
    return std::make_shared<Parameter>(name, uniform(device, std::move(shape), bound, random));
}

Tensor constant(Device& device, Shape shape, float value) {
    Tensor tensor(device, std::move(shape));
    fill(tensor, value);
    return tensor;
}

}  // namespace ddp
