// A batch larger than memory? Two houses with and without accumulation, state by state,
// then a network that learns from pictures in micro-batches.
#include <algorithm>
#include <iostream>

#include "04_gradient_accumulation/batch_models.hpp"
#include "04_gradient_accumulation/show/house_report.hpp"
#include "04_gradient_accumulation/show/picture_report.hpp"
#include "common/data/fashion_mnist.hpp"
#include "common/report/csv.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct AccumulationOptions {
    double learning_rate = 1e-3;
    int passes = 150;
    PictureOptions pictures;
};

// Goes over both houses in each pass, with a step for every batch; returns a row of the table.
// Stops where the steps are so long that the loss grows without bound.
std::vector<std::string> descend(Device& device, const std::vector<House>& two,
                                 const std::string& method,
                                 const std::vector<std::vector<MicroBatch>>& batches,
                                 const AccumulationOptions& options, CsvWriter& path) {
    const HouseBatchModel model(device, two);
    PlainSgd optimizer({model.weights}, options.learning_rate);
    Tape tape(device);
    const auto loss_of = [&](Tape& on, Samples samples) { return model.loss(on, samples); };
    std::vector<std::string> row;
    for (int pass = 0, step = 0, houses = 0; pass <= options.passes; pass++)
        for (const std::vector<MicroBatch>& batch : batches) {
            const std::vector<float> at = model.weights->value.to_host();
            const double loss = model.loss(tape, {0, 2}).value().to_host()[0];  // only to show it
            if (!(loss < 1e9))
                return {method, format_count(step), "", "", "", "diverges"};
            std::vector<CsvCell> cells{method, houses, step};
            row = {method, format_count(step)};
            for (const double number : {double{at[0]}, double{at[1]}, double{at[2]}, loss}) {
                cells.emplace_back(format_fixed(number, 6));
                row.push_back(format_fixed(number, 4));
            }
            path.row(cells);
            if (pass == options.passes)
                break;
            learn_batch(tape, optimizer, batch, loss_of);
            step++;
            houses += static_cast<int>(batch.size());
        }
    return row;
}

void show_descents(Device& device, const std::vector<House>& two,
                   const AccumulationOptions& options, const std::filesystem::path& csv) {
    CsvWriter path(csv, {"way", "houses", "step", "w1", "w2", "b", "loss"});
    Table table("After " + format_count(options.passes) + " passes over the two houses",
                {"", "steps", "w1", "w2", "b", "mean squared error"});
    const MicroBatch first{{0, 1}, 1.0f}, second{{1, 1}, 1.0f};
    const std::vector<std::vector<std::string>> rows{
        descend(device, two, "a step for each house", {{first}, {second}}, options, path),
        descend(device, two, "one for both, the mean", {micro_batches({0, 2}, 1)}, options, path),
        descend(device, two, "one for both, the sum", {{first, second}}, options, path)};
    if (std::ranges::all_of(rows, [](const auto& row) { return row.back() == "diverges"; }))
        throw std::runtime_error("all three descents diverge: try a smaller --learning-rate");
    for (const auto& row : rows)
        table.row(row);
    std::cout << table << "\n";
}

int run(int argc, char** argv) {
    AccumulationOptions options;
    PictureOptions& pictures = options.pictures;
    Options parser("gradient_accumulation",
                   "A batch larger than memory? Houses and pictures in micro-batches.");
    parser.add_double("--learning-rate", options.learning_rate, {1e-12, 1},
                      "length of a step with the houses");
    parser.add_int("--passes", options.passes, {1, 100'000}, "passes over the two houses");
    parser.with_quick("--passes", [&] { options.passes = 100; });
    add_picture_sizes(parser, pictures);
    parser.add_int("--steps", pictures.steps, {1, 10'000}, "steps with the pictures");
    parser.with_quick("--steps", [&] { pictures.steps = 3; });
    parser.refuse({"--ranks", "--processes", "--link", "--timeout", "--trace"},
                  "this chapter computes on one device; ranks begin in 05_ranks");
    parser.example("--batch 2048 --micro-batch 2048,64", "a larger batch, whole and divided");
    parser.example("--learning-rate 0.015", "short enough for the mean, too long for the sum");
    parser.example("--batch 500 --micro-batch 500,150", "an incomplete last micro-batch");
    const CommonOptions common = parser.parse(argc, argv);
    if (common.data.extension() == ".csv")
        throw OptionError("this chapter's --data takes pictures; 03_network takes a table, too.");
    const LabelledImages images =
        (common.data.empty() ? load_fashion_mnist() : load_fashion_mnist(common.data)).train;
    pictures = checked(pictures, images);
    Device device;
    const std::vector<House> seven = make_houses(7, common.seed);
    const std::vector<House> two(seven.begin(), seven.begin() + 2);
    show_states(device, two, options.learning_rate);
    show_sum_and_mean(device, two, options.learning_rate);
    show_incomplete(device, seven);
    show_descents(device, two, options, common.csv);
    show_pictures(images, pictures, common.seed);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run(argc, argv); });
}
