#include "01_sgd/by_hand.hpp"

#include "common/report/bench.hpp"

namespace ddp {

// ---- On the host

Law descend_on_host(const std::vector<House>& houses, int epochs, float learning_rate) {
    Law law;
    for (int epoch = 0; epoch < epochs; epoch++)
        for (const House& house : houses) {
            const float prediction = house.bedrooms * law.w1 + house.bathrooms * law.w2 + law.b;
            const float gradient = 2 * (prediction - house.price);  // of the squared error
            law.w1 -= learning_rate * (gradient * house.bedrooms);
            law.w2 -= learning_rate * (gradient * house.bathrooms);
            law.b -= learning_rate * gradient;
        }
    return law;
}

// ---- On the device

namespace {

// The body of the loop above. `law` holds w1, w2 and b.
__device__ void step_for(float bedrooms, float bathrooms, float price, float learning_rate,
                         float* law) {
    const float prediction = bedrooms * law[0] + bathrooms * law[1] + law[2];
    const float gradient = 2 * (prediction - price);
    law[0] -= learning_rate * (gradient * bedrooms);
    law[1] -= learning_rate * (gradient * bathrooms);
    law[2] -= learning_rate * gradient;
}

// For one thread: the step of house `i`.
__global__ void one_step(int i, const float* bedrooms, const float* bathrooms, const float* price,
                         float learning_rate, float* law) {
    step_for(bedrooms[i], bathrooms[i], price[i], learning_rate, law);
}

// For one thread: all steps.
__global__ void all_steps(int epochs, int houses, const float* bedrooms, const float* bathrooms,
                          const float* price, float learning_rate, float* law) {
    for (int epoch = 0; epoch < epochs; epoch++)
        for (int i = 0; i < houses; i++)
            step_for(bedrooms[i], bathrooms[i], price[i], learning_rate, law);
}

Tensor law_of_zeros(Device& device) {
    return {device, {3}, std::vector<float>{0, 0, 0}};
}

}  // namespace

Law descend_by_launches(Device& device, const HouseData& houses, int epochs, float learning_rate) {
    const Tensor law = law_of_zeros(device);
    for (int epoch = 0; epoch < epochs; epoch++)
        for (int i = 0; i < houses.count; i++)
            launch(device.stream(), {1, 1}, one_step, i, houses.bedrooms.data(),
                   houses.bathrooms.data(), houses.price.data(), learning_rate, law.data());
    const std::vector<float> values = law.to_host();  // waits
    return {values[0], values[1], values[2]};
}

EarlyRead read_too_early(Device& device, const HouseData& houses, int epochs, float learning_rate) {
    const Tensor law = law_of_zeros(device);
    PinnedBuffer<float> on_host(law.size());
    on_host[0] = 0;
    EarlyRead read;
    const Stopwatch watch;
    launch(device.stream(), {1, 1}, all_steps, epochs, houses.count, houses.bedrooms.data(),
           houses.bathrooms.data(), houses.price.data(), learning_rate, law.data());
    DDP_CHECK(cudaMemcpyAsync(on_host.data(), law.data(), law.bytes(), cudaMemcpyDeviceToHost,
                              device.stream()));
    read.enqueued_s = watch.seconds();
    read.too_early = on_host[0];
    device.stream().synchronize();
    read.done_s = watch.seconds();
    read.after_waiting = on_host[0];
    return read;
}

}  // namespace ddp
