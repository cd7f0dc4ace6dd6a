// One step of data parallel training by one process, with four devices and a batch of 8:
//
//                 device 0     device 1     device 2     device 3
//     replicate   w ---------> w ---------> w ---------> w         all from device 0
//     scatter     x0 x1        x2 x3        x4 x5        x6 x7     a slice of the batch each
//     compute     g            g            g            g         forward and backward
//     gather      g0+g1+g2+g3 <---- g1 <------- g2 <------- g3     all to device 0
//     step        w                                                on device 0 only
//
// Device 0 sends N - 1 times all parameters and receives N - 1 times all gradients in every step.
// Here the devices are streams of one GPU (or of the CPU), each with memory of its own.
#include "11_data_parallel/one_process.hpp"

#include "03_network/cross_entropy.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Adds n elements of `from` to those of `to`.
__global__ void add_to(std::size_t n, const float* from, float* to) {
    for (std::size_t i : grid_range(n))
        to[i] += from[i];
}

// Copies samples [begin, end) of a batch into memory of `device`, in its stream.
Batch scattered(const Batch& batch, int begin, int end, Device& device) {
    const std::size_t pixels = batch.images.size() / batch.labels.size();
    // [samples, channels, height, width]: only the first number differs.
    Shape shape = batch.images.shape();
    shape[0] = end - begin;
    Batch slice{Tensor(device, shape), Labels(device, {end - begin})};
    const auto copy = [&](auto& to, const auto* from) {
        DDP_CHECK(cudaMemcpyAsync(to.data(), from, to.bytes(), cudaMemcpyDeviceToDevice,
                                  device.stream()));
    };
    copy(slice.images, batch.images.data() + static_cast<std::size_t>(begin) * pixels);
    copy(slice.labels, batch.labels.data() + begin);
    return slice;
}

}  // namespace

// One of the other devices, with its copy of the model.
struct DataParallel::Replica {
    explicit Replica(const MakeModel& make_model) : model(make_model(device)) {}

    Device device;
    std::unique_ptr<Module> model;
    Event ready;  // its gradients are complete
};

// The work of one replica in one step. The tape owns the activations.
struct DataParallel::Work {
    std::unique_ptr<Tape> tape;
    Variable loss;  // the mean over the slice
    float share;    // of the batch's samples
};

DataParallel::DataParallel(Device& device, Module& model, int replicas, const MakeModel& make_model)
    : device_(device), model_(model) {
    for (int i = 1; i < replicas; i++)
        others_.push_back(std::make_unique<Replica>(make_model));
}

DataParallel::~DataParallel() = default;

// The last step has changed the parameters on device 0 only. So every step begins with copies.
void DataParallel::replicate() {
    ready_.record(device_.stream());
    const Parameters source = model_.parameters();
    for (const auto& other : others_) {
        // This device's stream waits for the step; the host does not.
        other->device.stream().wait(ready_);
        const Parameters target = other->model->parameters();
        for (std::size_t i = 0; i < source.size(); i++) {
            target[i]->clear_gradient();  // that of the last step is on device 0 already
            DDP_CHECK(cudaMemcpyAsync(target[i]->value.data(), source[i]->value.data(),
                                      source[i]->value.bytes(), cudaMemcpyDeviceToDevice,
                                      other->device.stream()));
        }
    }
}

// Scatter, forward and backward. This one thread starts the kernels of all devices.
std::vector<DataParallel::Work> DataParallel::compute(const Batch& batch) {
    const int samples = batch.labels.dim(0), slices = static_cast<int>(replicas());
    // Like torch.chunk: all slices are as large as the first, except for the last.
    const int size = (samples + slices - 1) / slices;
    std::vector<Work> all;
    for (int r = 0; r * size < samples; r++) {
        const int begin = r * size, end = std::min(samples, begin + size);
        Device& device = r == 0 ? device_ : others_[static_cast<std::size_t>(r - 1)]->device;
        Module& model = r == 0 ? model_ : *others_[static_cast<std::size_t>(r - 1)]->model;
        // Scatter.
        const Batch slice = scattered(batch, begin, end, device);
        const float share = static_cast<float>(end - begin) / static_cast<float>(samples);
        // Forward and backward. Both only enqueue, so the next device starts without a wait.
        auto tape = std::make_unique<Tape>(device);
        const Variable loss =
            cross_entropy(model.forward(tape->constant(slice.images)), slice.labels);
        // Scaled by the slice's share of the batch, the gradients add up to that of the mean loss.
        tape->backward(loss, {}, share);
        all.push_back({std::move(tape), loss, share});
    }
    return all;
}

void DataParallel::gather() {
    const Parameters target = model_.parameters();
    // One replica after the other: all gradients enter device 0 through the same port.
    for (const auto& other : others_) {
        // Device 0's stream waits for this replica's backward; the host does not.
        other->ready.record(other->device.stream());
        device_.stream().wait(other->ready);
        const Parameters source = other->model->parameters();
        for (std::size_t i = 0; i < target.size(); i++)
            if (source[i]->has_gradient()) {
                Tensor& sum = target[i]->gradient_for_writing();
                launch(device_.stream(), grid_for(sum.size()), add_to, sum.size(),
                       source[i]->gradient().data(), sum.data());
            }
    }
}

double DataParallel::learn(const Batch& batch) {
    // The caller's optimizer then changes device 0's parameters.
    replicate();
    const std::vector<Work> works = compute(batch);
    gather();
    // The mean over the batch, as a mean of means with the slices' shares as weights.
    double loss = 0;
    for (const Work& each : works)
        loss += each.share * each.loss.value().to_host()[0];
    return loss;
}

}  // namespace ddp
