#include "13_async/support/experiment.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "03_network/training.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/replica.hpp"
#include "11_data_parallel/training_result.hpp"
#include "12_sampler/sampler.hpp"
#include "13_async/local_sgd.hpp"

namespace ddp {
namespace {

constexpr std::size_t arena_bytes = 8 << 20;
constexpr int points_per_curve = 50;

std::size_t elements_of(const Parameters& parameters) {
    std::size_t sum = 0;
    for (const auto& parameter : parameters)
        sum += parameter->value.size();
    return sum;
}

// Returns a curve with fewer points: each has the mean loss of the gradients since the one before.
std::vector<Outcome::Point> curve_of(const std::vector<Outcome::Point>& all) {
    const std::size_t each = std::max<std::size_t>(1, all.size() / points_per_curve);
    std::vector<Outcome::Point> curve;
    double sum = 0;
    for (std::size_t i = 0; i < all.size(); i++) {
        sum += all[i].loss;
        if ((i + 1) % each != 0)
            continue;
        curve.push_back({all[i].gradients, all[i].seconds, sum / static_cast<double>(each)});
        sum = 0;
    }
    return curve;
}

// Moves the parameters into `values`, one after the other, and their gradients into `gradients`:
// one message then carries all parameters, and one all their gradients. Only enqueues.
void move_to(const Parameters& parameters, const Tensor& values, const Tensor& gradients) {
    std::size_t first = 0;
    for (const auto& parameter : parameters) {
        const Tensor place = values.view(first, parameter->value.shape());
        DDP_CHECK(cudaMemcpyAsync(place.data(), parameter->value.data(), place.bytes(),
                                  cudaMemcpyDeviceToDevice, place.device().stream()));
        parameter->value = place;
        parameter->place_gradient(gradients.view(first, place.shape()));
        first += place.size();
    }
}

void require_finite(const Tensor& values) {
    if (!std::ranges::all_of(values.to_host(), [](float value) { return std::isfinite(value); }))
        throw std::runtime_error(
            "the parameters are no longer numbers: the steps are too long; try a smaller "
            "--learning-rate");
}

// Returns the options. Throws OptionError if there are too few pictures for one step.
const ExperimentOptions& valid_options(const ExperimentOptions& options, const FashionMnist& data,
                                       int ranks) {
    const auto least = static_cast<std::size_t>(options.batch) * static_cast<std::size_t>(ranks);
    if (data.train.count() < least)
        throw OptionError("A step of " + std::to_string(ranks) + " ranks with " +
                          std::to_string(options.batch) + " samples each needs more than the " +
                          std::to_string(data.train.count()) +
                          " there are: use a smaller --batch.");
    return options;
}

}  // namespace

std::string to_string(Algorithm algorithm) {
    switch (algorithm) {
        case Algorithm::synchronous:
            return "synchronous";
        case Algorithm::asynchronous:
            return "asynchronous";
        case Algorithm::bounded:
            return "bounded staleness";
        default:
            return "local SGD";
    }
}

// A rank's network and its share of the pictures, epoch after epoch.
struct Experiment::Worker {
    Worker(Experiment& experiment, int number, int workers, bool is_slow)
        : model_device(experiment.device_),
          model(experiment.make_model()),
          sampler(static_cast<int>(experiment.data_.train.count()), number, workers,
                  {.seed = experiment.options_.seed, .drop_last = true}),
          loader(experiment.train_),
          tape(experiment.device_),
          sleeps_s(experiment.options_.compute_s * (is_slow ? experiment.options_.slow : 1)) {
        // The first gradient loads its kernels (FirstPass), and must not do so while the server or
        // another worker waits for this one: it is computed once before, and forgotten.
        loader.start_epoch(sampler.indices());
        compute();
        loader.start_epoch(sampler.indices());
        busy_s = 0;
    }

    // Computes the next batch's gradients, leaves them in the model, and returns the loss. Waits
    // for the device, so that busy_s has the whole time.
    Tensor compute() {
        const Stopwatch watch;
        std::this_thread::sleep_for(std::chrono::duration<double>(sleeps_s));
        std::optional<Batch> batch = loader.next();
        if (!batch) {
            sampler.set_epoch(++epoch);
            loader.start_epoch(sampler.indices());
            batch = loader.next();
        }
        for (const auto& parameter : model->parameters())
            parameter->clear_gradient();
        const Variable loss =
            cross_entropy(model->forward(tape.constant(batch->images)), batch->labels);
        tape.backward(loss);
        const Tensor value = loss.value();
        tape.clear();
        model_device.stream().synchronize();
        busy_s += watch.seconds();
        return value;
    }

    Device& model_device;
    std::unique_ptr<Sequential> model;
    DistributedSampler sampler;
    Loader& loader;
    Tape tape;
    const double sleeps_s;
    int epoch = 0;
    double busy_s = 0;  // in compute()
};

// The loaders serve one training after the other: each has a stream, and a GPU has few queues for
// the streams of all ranks.
Experiment::Experiment(Rank& rank, const FashionMnist& data, const ExperimentOptions& options)
    : rank_(rank),
      data_(data),
      options_(valid_options(options, data, rank.world_size())),
      device_(make_run_scoped<Device>(rank, rank_memory(rank))),
      train_(make_run_scoped<Loader>(rank, device_, data.train, fashion_mnist_normalisation,
                                     options.batch, LastBatch::drop)),
      test_(make_run_scoped<Loader>(
          rank, device_, data.test, fashion_mnist_normalisation,
          static_cast<int>(std::min<std::size_t>(data.test.count(), 100)))) {}

std::unique_ptr<Sequential> Experiment::make_model() {
    Random random(options_.seed);
    return make_mlp(device_, random, mlp_widths(data_.train, {64}));
}

double Experiment::accuracy_of(Sequential& model) {
    test_.start_epoch(in_order(test_.samples()));
    return evaluate(device_, model, test_).accuracy();
}

Outcome Experiment::run(Algorithm algorithm, bool has_slow) {
    const int ranks = rank_.world_size(), workers = ranks - 1;
    if (algorithm == Algorithm::local)
        return locally(options_.every, options_.gradients / ranks, has_slow);
    ServerOptions server;
    server.workers = workers;
    server.gradients = options_.gradients / workers * workers;
    server.is_synchronous = algorithm == Algorithm::synchronous;
    if (algorithm == Algorithm::bounded)
        server.bound = options_.bound;
    return with_server(server, has_slow);
}

Outcome Experiment::with_server(const ServerOptions& options, bool has_slow) {
    const int me = rank_.rank();
    Worker worker(*this, std::max(me - 1, 0), std::max(rank_.world_size() - 1, 1),
                  has_slow && me == 1);
    const Parameters parameters = worker.model->parameters();
    Peers peers(rank_, arena_bytes);
    MessageBuffers buffers(peers, device_, elements_of(parameters));
    move_to(parameters, buffers.values, buffers.gradients);
    device_.stream().synchronize();
    Outcome outcome;
    ServerLog log;
    double idle = 0;  // of this rank
    std::optional<Server> server;
    if (me == 0)
        server.emplace(peers, device_, buffers, options_.learning_rate / options.workers, options);
    rank_.barrier();  // from here on no rank allocates device memory
    if (server)
        log = server->serve();
    else if (me <= options.workers) {
        const Stopwatch watch;
        run_worker(peers, device_, buffers, [&](int) { return worker.compute(); });
        idle = 1 - worker.busy_s / watch.seconds();
    }
    const std::vector<double> all_idle = rank_.all_gather(idle);
    if (me != 0)
        return outcome;
    if (const std::string wrong = what_is_wrong(log, options); !wrong.empty())
        throw std::runtime_error(wrong);
    for (const Applied& each : log.applied)
        outcome.curve.push_back(
            {static_cast<int>(outcome.curve.size()) + 1, each.seconds, each.loss});
    outcome = {options.gradients,
               log.updates(),
               log.seconds,
               log.mean_staleness(),
               log.max_staleness(),
               log.max_ahead,
               std::accumulate(all_idle.begin(), all_idle.end(), 0.0) / options.workers,
               accuracy_of(*worker.model),
               curve_of(outcome.curve)};
    require_finite(buffers.values);
    return outcome;
}

Outcome Experiment::locally(int every, int steps, bool has_slow) {
    const int ranks = rank_.world_size();
    Worker worker(*this, rank_.rank(), ranks, has_slow && rank_.rank() == 1 % ranks);
    const Parameters parameters = worker.model->parameters();
    const auto communicator = make_communicator("native", rank_, arena_bytes);
    const int size = static_cast<int>(elements_of(parameters));
    const Tensor values(device_, {size},
                        communicator->allocate<float>(static_cast<std::size_t>(size)).share());
    move_to(parameters, values, Tensor(device_, {size}));
    PlainSgd optimizer(parameters, options_.learning_rate);
    std::vector<double> losses, times;
    rank_.barrier();  // from here on no rank allocates device memory
    const Stopwatch watch;
    Outcome outcome;
    outcome.updates = local_sgd(*communicator, values, optimizer, steps, every, [&](int) {
        losses.push_back(worker.compute().to_host()[0]);
        times.push_back(watch.seconds());
    });
    outcome.seconds = watch.seconds();
    outcome.idle = rank_.mean_over_ranks(1 - worker.busy_s / outcome.seconds);
    losses = mean_of_ranks(rank_, losses);
    times = mean_of_ranks(rank_, times);
    for (std::size_t i = 0; i < losses.size(); i++)
        outcome.curve.push_back({static_cast<int>(i + 1) * ranks, times[i], losses[i]});
    outcome.curve = curve_of(outcome.curve);
    outcome.gradients = steps * ranks;
    require_finite(values);
    if (rank_.rank() == 0)
        outcome.accuracy = accuracy_of(*worker.model);
    rank_.barrier();
    return outcome;
}

}  // namespace ddp
