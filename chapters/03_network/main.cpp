// A network worth distributing. Trains an MLP or a CNN on Fashion-MNIST, and shows
// where the time of a step goes, which classes are confused, and what the loader gains.
#include <algorithm>
#include <iostream>

#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "03_network/show/network_report.hpp"
#include "03_network/show/picture_report.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/trace.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct NetworkOptions {
    std::string model = "mlp";
    int epochs = 5;
    int batch = 64;
    std::optional<double> learning_rate;  // not given: one that suits model and optimizer
    std::string optimizer = "sgd";
    double eps = Adam::eps;
};

std::unique_ptr<Optimizer> make_optimizer(const NetworkOptions& options, const Parameters& all) {
    if (options.optimizer == "adam")
        return std::make_unique<Adam>(all, options.learning_rate.value_or(1e-3), 0.0, options.eps);
    return std::make_unique<Sgd>(
        all, options.learning_rate.value_or(options.model == "cnn" ? 0.01 : 0.03));
}

// Prints the line of one epoch; `seconds` count from the first epoch's start.
void print_epoch(int epoch, const Metrics::Totals& trained, const Metrics::Totals& tested,
                 double seconds) {
    std::cout << "epoch " << epoch << "  loss " << format_fixed(trained.loss(), 4)
              << "  train accuracy " << format_fixed(trained.accuracy(), 3) << "  test accuracy "
              << format_fixed(tested.accuracy(), 3) << "  " << format_seconds(seconds) << std::endl;
}

CommonOptions parse(int argc, char** argv, NetworkOptions& options) {
    Options parser("network", "A network worth distributing: Fashion-MNIST on one device.");
    parser.add_choice("--model", options.model, {"mlp", "cnn"}, "what to train");
    parser.add_int("--epochs", options.epochs, {1, 10'000}, "passes over the training samples");
    parser.with_quick("--epochs", [&] { options.epochs = 2; });
    parser.add_int("--batch", options.batch, {1, 60'000}, "samples per step");
    parser.add_double("--learning-rate", options.learning_rate, {1e-12, 1e6},
                      "learning rate of the first epoch; it falls with every epoch (sgd 0.03, with "
                      "the cnn 0.01; adam 0.001)");
    parser.add_choice("--optimizer", options.optimizer, {"sgd", "adam"},
                      "with momentum 0.9, or Adam");
    parser.add_double("--eps", options.eps, {1e-30, 1e6},
                      "what Adam adds to the root it divides by");
    parser.refuse({"--ranks", "--processes", "--link", "--timeout"},
                  "this chapter computes on one device; ranks begin in 05_ranks");
    parser.example("--model cnn --epochs 3", "convolutions: slower, and better");
    parser.example("--learning-rate 100", "steps that are too long");
    return parser.parse(argc, argv);
}

int run(int argc, char** argv) {
    NetworkOptions options;
    const CommonOptions common = parse(argc, argv, options);
    const FashionMnist data = load_data(common);
    require_batch(options.batch, data.train);
    Trace trace(common.trace);
    const Track track = trace.track(0, "host");
    Device device;
    Random random(common.seed);
    const auto model = make_model(options.model, device, random, data.train);
    std::cout << data.about;
    const auto optimizer = make_optimizer(options, model->parameters());
    Loader train(device, data.train, fashion_mnist_normalisation, options.batch);
    Loader test(device, data.test, fashion_mnist_normalisation,
                std::min(500, static_cast<int>(data.test.count())));
    const int samples = common.quick ? std::min(3'000, train.samples()) : train.samples();
    StepTimes times(device.stream());
    Trainer trainer(device, *model, *optimizer, times);
    CsvWriter csv(common.csv,
                  {"epoch", "step", "loss", "train_accuracy", "test_accuracy", "time_s"});
    Metrics::Totals tested;
    const double first_rate = optimizer->learning_rate();
    const Stopwatch watch;
    for (int epoch = 1; epoch <= options.epochs; epoch++) {
        // Long steps at first, to get near a minimum; short ones at the end, to settle in it.
        optimizer->set_learning_rate(first_rate * (options.epochs - epoch + 1) / options.epochs);
        const Span span(trace, track, "epoch " + std::to_string(epoch));
        train.start_epoch(shuffled(samples, common.seed, epoch));
        const Metrics::Totals trained = trainer.epoch(train, "epoch " + std::to_string(epoch));
        test.start_epoch(in_order(test.samples()));
        tested = evaluate(device, *model, test);
        csv.row({epoch, times.steps(), trained.loss(), trained.accuracy(), tested.accuracy(),
                 watch.seconds()});
        print_epoch(epoch, trained, tested, watch.seconds());
    }
    show_size(options.model, model->parameters());
    show_times(times, device, beside(common.csv, "profile"));
    test.start_epoch(in_order(test.samples()));
    show_confusion(confusion_of(device, *model, test, data.test.classes),
                   beside(common.csv, "confusion"));
    if (!data.test.are_numbers)
        show_answers(device, *model, data.test, common.csv);
    show_loader(measure_loader(device, data.train, options.model, options.batch,
                               common.quick ? 2 : 10, common.quick ? 1 : 5));
    std::cout << "test accuracy " << format_fixed(tested.accuracy(), 3) << "\n";
    trace.write();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run(argc, argv); });
}
