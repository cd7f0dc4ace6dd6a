// How does one device learn? A descent by hand, two steps with every number, and the
// descent through the tape.
#include <cmath>
#include <iostream>

#include "01_sgd/house_model.hpp"
#include "01_sgd/show/reports.hpp"
#include "common/report/csv.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/progress.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct SgdOptions {
    int houses = 50;
    int epochs = 400;
    double learning_rate = 1e-3;
};

// Takes `epochs` times one step for every house; returns the mean squared error of the last epoch.
double descend(HouseModel& model, Optimizer& optimizer, const HouseData& data, int epochs,
               CsvWriter& path) {
    Progress progress("descending", epochs);
    Tape tape(model.b->value.device());
    double mean_loss = 0;
    for (int epoch = 0, step = 0; epoch < epochs; epoch++) {
        mean_loss = 0;
        for (int house = 0; house < data.count; house++) {
            tape.clear();
            const Variable loss = model.loss(tape, data, house);  // forward
            tape.backward(loss);                                  // backward
            optimizer.step();                                     // step
            optimizer.zero_gradients();                           // zero
            step++;
            const float error = loss.value().to_host()[0];
            if (!std::isfinite(error))
                throw std::runtime_error("the loss is no longer a number at step " +
                                         std::to_string(step) +
                                         ": the steps are too long; try a smaller --learning-rate");
            mean_loss += error / data.count;
        }
        const std::vector<std::string> now = row_of("", model);
        path.row({optimizer.learning_rate(), epoch + 1, step, now[1], now[2], now[3], mean_loss});
        progress.advance();
    }
    return mean_loss;
}

int run(int argc, char** argv) {
    SgdOptions options;
    Options parser("sgd",
                   "How does one device learn? House prices by stochastic gradient descent.");
    parser.add_int("--houses", options.houses, {2, 100'000}, "how many houses to learn from");
    parser.add_int("--epochs", options.epochs, {1, 1'000'000}, "passes through all houses");
    parser.with_quick("--epochs", [&] { options.epochs = 20; });
    parser.add_double("--learning-rate", options.learning_rate, {1e-12, 1e6}, "length of a step");
    parser.refuse({"--ranks", "--processes", "--link", "--timeout", "--data", "--trace"},
                  "this chapter computes on one device; ranks begin in 05_ranks");
    parser.example("--epochs 10", "the first, fast part of the descent");
    parser.example("--learning-rate 0.05", "steps that are too long");
    const CommonOptions common = parser.parse(argc, argv);
    const std::vector<House> houses =
        make_houses(static_cast<std::size_t>(options.houses), common.seed);
    Device device;
    const HouseData data(device, houses);
    show_by_hand(device, houses, data, options.epochs, options.learning_rate, common.csv);
    HouseModel model(device);
    PlainSgd optimizer(model.parameters(), options.learning_rate);
    show_step(model, optimizer, data, 0, beside(common.csv, "tape"));
    show_step(model, optimizer, data, 1, {});
    write_houses(common.csv, houses);
    CsvWriter path(common.csv, {"learning_rate", "epoch", "step", "w1", "w2", "b", "loss"});
    const double loss = descend(model, optimizer, data, options.epochs, path);
    Table table("After " + format_count(options.epochs) + " epochs of " +
                    std::to_string(houses.size()) + " houses",
                {"", "w1", "w2", "b", "mean squared error"});
    std::vector<std::string> learned = row_of("learned", model);
    learned.push_back(format_fixed(loss, 4));
    table.row(learned);
    table.row({"the law behind the prices", "3.0000", "1.0000", "-5.0000", "0.2500"});
    std::cout << table;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run(argc, argv); });
}
