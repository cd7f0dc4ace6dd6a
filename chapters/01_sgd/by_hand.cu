// One training step for one house, with derivatives found with a pencil. The numbers are those of
// the first house (6 bedrooms, 2 bathrooms, price 15), with w1 = w2 = b = 0 and rate 0.001:
//
//     forward     prediction = x1 w1 + x2 w2 + b            0
//                 error      = prediction - price         -15      loss = error² = 225
//     backward    d loss / d prediction = 2 error         -30
//                 d loss / d w1 = 2 error x1, w2: x2, b: 1        -180, -60, -30
//     step        parameter -= rate * gradient                    0.18, 0.06, 0.03
//     zero        nothing to do: the gradient is a new variable in each step
//
// The file takes these steps three times: on the host, on the device with a launch for each step,
// and on the device with one launch for all steps. The results agree to the bit.
#include "01_sgd/by_hand.hpp"

#include "common/report/bench.hpp"

namespace ddp {

// ---- On the host

LinearModel descend_on_host(const std::vector<House>& houses, int epochs, float learning_rate) {
    LinearModel model;
    for (int epoch = 0; epoch < epochs; epoch++)
        for (const House& house : houses) {
            // forward
            const float prediction =
                house.bedrooms * model.w1 + house.bathrooms * model.w2 + model.b;
            // backward: the derivative of the squared error with respect to the prediction
            const float gradient = 2 * (prediction - house.price);
            // step
            model.w1 -= learning_rate * (gradient * house.bedrooms);
            model.w2 -= learning_rate * (gradient * house.bathrooms);
            model.b -= learning_rate * gradient;
        }
    return model;
}

// ---- On the device

namespace {

// Takes one step, as the body of the loop above does. `model` holds w1, w2 and b in device memory.
__device__ void step_for(float bedrooms, float bathrooms, float price, float learning_rate,
                         float* model) {
    const float prediction = bedrooms * model[0] + bathrooms * model[1] + model[2];
    const float gradient = 2 * (prediction - price);
    model[0] -= learning_rate * (gradient * bedrooms);
    model[1] -= learning_rate * (gradient * bathrooms);
    model[2] -= learning_rate * gradient;
}

// Takes the step of house `i`. Runs in a single thread; the columns hold one value per house.
__global__ void one_step(int i, const float* bedrooms, const float* bathrooms, const float* price,
                         float learning_rate, float* model) {
    step_for(bedrooms[i], bathrooms[i], price[i], learning_rate, model);
}

// Takes all epochs * houses steps. Runs in a single thread, since each step needs the one before.
__global__ void all_steps(int epochs, int houses, const float* bedrooms, const float* bathrooms,
                          const float* price, float learning_rate, float* model) {
    for (int epoch = 0; epoch < epochs; epoch++)
        for (int i = 0; i < houses; i++)
            step_for(bedrooms[i], bathrooms[i], price[i], learning_rate, model);
}

// Returns the device memory in which a descent begins: w1 = w2 = b = 0.
Tensor model_of_zeros(Device& device) {
    return {device, {3}, std::vector<float>{0, 0, 0}};
}

}  // namespace

LinearModel descend_by_launches(Device& device, const HouseData& houses, int epochs,
                                float learning_rate) {
    const Tensor model = model_of_zeros(device);
    // The loop only fills the stream. The device executes the launches in this order.
    for (int epoch = 0; epoch < epochs; epoch++)
        for (int i = 0; i < houses.count; i++)
            launch(device.stream(), {1, 1}, one_step, i, houses.bedrooms.data(),
                   houses.bathrooms.data(), houses.price.data(), learning_rate, model.data());
    const std::vector<float> values = model.to_host();  // waits for the last step
    return {values[0], values[1], values[2]};
}

EarlyRead read_too_early(Device& device, const HouseData& houses, int epochs, float learning_rate) {
    const Tensor model = model_of_zeros(device);
    // Pinned host memory: a copy into ordinary memory would wait, and hide the mistake.
    PinnedBuffer<float> on_host(model.size());
    on_host[0] = 0;
    EarlyRead read;
    const Stopwatch watch;
    // Enqueue the kernel, and then the copy of w1, w2 and b to the host.
    launch(device.stream(), {1, 1}, all_steps, epochs, houses.count, houses.bedrooms.data(),
           houses.bathrooms.data(), houses.price.data(), learning_rate, model.data());
    DDP_CHECK(cudaMemcpyAsync(on_host.data(), model.data(), model.bytes(), cudaMemcpyDeviceToHost,
                              device.stream()));
    // The mistake: read w1 when the kernel and the copy may not have run yet.
    read.enqueued_s = watch.seconds();
    read.too_early = on_host[0];
    // The right way: wait for the stream, then read.
    device.stream().synchronize();
    read.done_s = watch.seconds();
    read.after_waiting = on_host[0];
    return read;
}

}  // namespace ddp
