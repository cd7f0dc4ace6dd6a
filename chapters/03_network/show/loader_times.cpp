#include "03_network/show/loader_times.hpp"

#include <algorithm>

#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "03_network/training.hpp"
#include "common/data/fashion_mnist.hpp"
#include "common/report/bench.hpp"
#include "common/report/stats.hpp"

namespace ddp {
namespace {

constexpr std::size_t bytes_to_copy = 16 << 20;

enum class Until { returned, done };

void measure_copies(LoaderTimes& times, int rounds) {
    const std::vector<std::uint8_t> pageable(bytes_to_copy, 1);
    PinnedBuffer<std::uint8_t> pinned(bytes_to_copy);
    std::ranges::fill(pinned.span(), std::uint8_t{1});
    Buffer<std::uint8_t> device(bytes_to_copy);
    Stream stream;
    const auto copy = [&](const std::uint8_t* from, Until until) -> Measurement {
        return [&, from, until] {
            const Stopwatch watch;
            DDP_CHECK(cudaMemcpyAsync(device.data(), from, bytes_to_copy, cudaMemcpyHostToDevice,
                                      stream));
            const double returned_s = watch.seconds();
            stream.synchronize();
            return until == Until::returned ? returned_s : watch.seconds();
        };
    };
    const std::vector<Measurement> all{
        copy(pageable.data(), Until::returned), copy(pageable.data(), Until::done),
        copy(pinned.data(), Until::returned), copy(pinned.data(), Until::done)};
    const auto seconds = interleave(all, 1, rounds);
    times.copy_bytes = bytes_to_copy;
    times.pageable = {median(seconds[0]), median(seconds[1])};
    times.pinned = {median(seconds[2]), median(seconds[3])};
}

void measure_steps(LoaderTimes& times, Device& device, const LabelledImages& images,
                   const std::string& name, int batch, int rounds) {
    Random random(1);
    const auto model = make_model(name, device, random, images);
    Sgd optimizer(model->parameters(), 1e-3);
    StepTimes marks(device.stream());
    Trainer trainer(device, *model, optimizer, marks);
    Loader waiting(device, images, fashion_mnist_normalisation, batch, LastBatch::keep,
                   Prefetch::off);
    Loader prefetching(device, images, fashion_mnist_normalisation, batch);
    const int samples = std::min(prefetching.samples(), times.steps * batch);
    const auto train = [&](Loader& loader) -> Measurement {
        return [&] {
            const Stopwatch watch;
            loader.start_epoch(in_order(samples));
            trainer.epoch(loader, "measuring the loader");
            return watch.seconds() / loader.batches();
        };
    };
    const auto seconds = interleave(std::vector{train(waiting), train(prefetching)}, 1, rounds);
    times.step_waiting_s = median(seconds[0]);
    times.step_prefetched_s = median(seconds[1]);
}

}  // namespace

LoaderTimes measure_loader(Device& device, const LabelledImages& images, const std::string& model,
                           int batch, int steps, int rounds) {
    LoaderTimes times;
    times.steps = steps;
    measure_copies(times, rounds);
    measure_steps(times, device, images, model, batch, rounds);
    return times;
}

}  // namespace ddp
