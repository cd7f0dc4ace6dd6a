// A step whose pictures arrive slowly, with 0, 1, 2 and 4 worker threads that fetch them ahead.
// Only the fetching is pretended: it waits, as a program waits for a disk or for the network.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <thread>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/small_training.hpp"
#include "03_network/models.hpp"
#include "12_sampler/sampler.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/main.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tests/bench/12_sampler/worker_loader.hpp"

namespace {

using namespace ddp;

struct WorkerOptions {
    int batch = 64;
    int fetch = 20;  // milliseconds that a batch takes to arrive
};

struct HostBatch {
    std::vector<float> images;  // [batch, pixels], normalised
    std::vector<int> labels;
};

HostBatch fetch(const LabelledImages& data, std::span<const int> samples, int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    const std::size_t pixels = data.image_size();
    HostBatch batch{std::vector<float>(samples.size() * pixels), {}};
    for (const int sample : samples) {
        const auto i = static_cast<std::size_t>(sample);
        normalise(data.image(i), fashion_mnist_normalisation,
                  std::span(batch.images).subspan(batch.labels.size() * pixels, pixels));
        batch.labels.push_back(data.labels[i]);
    }
    return batch;
}

struct StepSeconds {
    double all = 0, waited = 0;  // waited for the batch
};

// Trains a new network on the first batches of an epoch.
StepSeconds train(Device& device, const LabelledImages& data, const WorkerOptions& options,
                  int workers, int steps, std::uint64_t seed) {
    Random random(seed);
    const auto model = make_mlp(device, random, mlp_widths(data, {256, 256}));
    Sgd optimizer(model->parameters(), 0.02);
    SmallTraining training(device, optimizer);
    const std::vector<int> order =
        DistributedSampler(static_cast<int>(data.count()), 0, 1, {.seed = seed}).indices();
    WorkerLoader<HostBatch> loader(steps, workers, [&](int batch) {
        return fetch(data, std::span(order).subspan(batch * options.batch, options.batch),
                     options.fetch);
    });
    StepSeconds seconds;
    const Stopwatch all;
    for (;;) {
        const Stopwatch waiting;
        const std::optional<HostBatch> batch = loader.next();
        seconds.waited += waiting.seconds() / steps;
        if (!batch)
            break;
        const Tensor images(device, {options.batch, static_cast<int>(data.image_size())},
                            batch->images);
        const Labels labels(device, {options.batch}, batch->labels);
        training.step([&](Tape& tape) {
            return cross_entropy(model->forward(tape.constant(images)), labels);
        });
        device.stream().synchronize();
    }
    seconds.all = all.seconds() / steps;
    return seconds;
}

int run(int argc, char** argv) {
    WorkerOptions options;
    Options parser("bench_workers", "A step whose pictures arrive slowly, with worker threads.");
    parser.add_int("--batch", options.batch, {1, 256}, "pictures per step");
    parser.add_int("--fetch", options.fetch, {0, 1000},
                   "milliseconds that a batch takes to arrive");
    parser.refuse({"--data"}, "it only asks how long a batch takes, whichever pictures are in it");
    parser.refuse({"--ranks", "--processes", "--link", "--timeout", "--trace"},
                  "each rank has workers of its own, and one rank shows what they do");
    parser.example("--fetch 200", "a slower disk");
    const CommonOptions common = parser.parse(argc, argv);
    const LabelledImages data = load_data(common).train;
    const int steps =
        std::min(common.quick ? 5 : 20, static_cast<int>(data.count()) / options.batch);
    const int rounds = common.quick ? 1 : 5;
    constexpr int all_workers[] = {0, 1, 2, 4};
    std::map<int, std::vector<double>> seconds, waited;
    Device device;
    train(device, data, options, 4, steps, common.seed);  // warms up
    for (int round = 0; round < rounds; round++)
        for (const int workers : all_workers) {
            const StepSeconds step = train(device, data, options, workers, steps, common.seed);
            seconds[workers].push_back(step.all);
            waited[workers].push_back(step.waited);
        }
    Table table("A step with " + format_count(options.batch, "picture") + ", which take " +
                    format_count(options.fetch) + " ms to arrive",
                {"workers", "a step", "of it waiting"});
    CsvWriter csv(common.csv, {"workers", "seconds", "waited"});
    for (const int workers : all_workers) {
        const double all = median(seconds[workers]), waiting = median(waited[workers]);
        table.row({format_count(workers), format_seconds(all), format_seconds(waiting)});
        csv.row({workers, all, waiting});
    }
    std::cout << table;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run(argc, argv); });
}
