#include "10_data_parallel/one_process.hpp"

#include "03_network/cross_entropy.hpp"
#include "common/gpu/gpu.hpp"
#include "common/report/bench.hpp"

namespace ddp {
namespace {

__global__ void add_to(std::size_t n, const float* from, float* to) {
    for (std::size_t i : grid_range(n))
        to[i] += from[i];
}

// Samples [begin, end) of a batch, in the memory of `device`.
Batch part_of(const Batch& batch, int begin, int end, Device& device) {
    const std::size_t pixels = batch.images.size() / batch.labels.size();
    Shape shape = batch.images.shape();
    shape[0] = end - begin;
    Batch part{Tensor(device, shape), Labels(device, {end - begin})};
    const auto copy = [&](auto& to, const auto* from) {
        DDP_CHECK(cudaMemcpyAsync(to.data(), from, to.bytes(), cudaMemcpyDeviceToDevice,
                                  device.stream()));
    };
    copy(part.images, batch.images.data() + static_cast<std::size_t>(begin) * pixels);
    copy(part.labels, batch.labels.data() + begin);
    return part;
}

}  // namespace

struct DataParallel::Replica {
    Replica(const MakeModel& make_model, std::size_t reserved_bytes)
        : device(reserved_bytes), model(make_model(device)) {}

    Device device;
    std::unique_ptr<Module> model;
    Event ready;
};

DataParallel::DataParallel(Device& device, Module& model, int replicas, const MakeModel& make_model,
                           std::size_t reserved_bytes)
    : device_(device), model_(model) {
    for (int i = 1; i < replicas; i++)
        others_.push_back(std::make_unique<Replica>(make_model, reserved_bytes));
}

DataParallel::~DataParallel() = default;

// The optimizer has changed the first replica only.
void DataParallel::replicate() {
    ready_.record(device_.stream());
    const Parameters source = model_.parameters();
    for (const auto& other : others_) {
        other->device.stream().wait(ready_);
        const Parameters target = other->model->parameters();
        for (std::size_t i = 0; i < source.size(); i++) {
            target[i]->clear_gradient();
            DDP_CHECK(cudaMemcpyAsync(target[i]->value.data(), source[i]->value.data(),
                                      source[i]->value.bytes(), cudaMemcpyDeviceToDevice,
                                      other->device.stream()));
        }
    }
}

// One after the other: all of them go through the first device's port.
void DataParallel::gather() {
    const Parameters target = model_.parameters();
    for (const auto& other : others_) {
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
    const int samples = batch.labels.dim(0), parts = static_cast<int>(replicas());
    const auto wait = [&] {
        device_.stream().synchronize();
        for (const auto& other : others_)
            other->device.stream().synchronize();
    };
    Stopwatch watch;
    const auto lap = [&] {
        wait();
        const double seconds = watch.seconds();
        watch = Stopwatch();
        return seconds;
    };
    wait();
    watch = Stopwatch();
    replicate();
    times_.replicate = lap();

    // As torch.chunk cuts: all parts as large as the first, but for the last.
    const int size = (samples + parts - 1) / parts;
    std::vector<std::unique_ptr<Tape>> tapes;
    std::vector<std::pair<Variable, float>> losses;
    for (int r = 0; r * size < samples; r++) {
        const int begin = r * size, end = std::min(samples, begin + size);
        const float share = static_cast<float>(end - begin) / static_cast<float>(samples);
        Device& device = r == 0 ? device_ : others_[static_cast<std::size_t>(r - 1)]->device;
        Module& model = r == 0 ? model_ : *others_[static_cast<std::size_t>(r - 1)]->model;
        const Batch part = part_of(batch, begin, end, device);
        Tape& tape = *tapes.emplace_back(std::make_unique<Tape>(device));
        const Variable loss = cross_entropy(model.forward(tape.constant(part.images)), part.labels);
        tape.backward(loss, {}, share);
        losses.emplace_back(loss, share);
    }
    times_.compute = lap();
    gather();
    times_.gather = lap();
    double loss = 0;
    for (const auto& [each, share] : losses)
        loss += share * each.value().to_host()[0];
    return loss;
}

}  // namespace ddp
