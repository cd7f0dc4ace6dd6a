// Measures what is sent in a step, and when: what becomes of gradients that are sent out of order,
// what 16-bit numbers lose, what each bucket hook sends and loses in a short training, and what
// no_sync saves.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/compression.hpp"
#include "15_overlap/hooks_by_name.hpp"
#include "common/report/csv.hpp"
#include "common/report/options.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tests/bench/15_overlap/hook_training.hpp"
#include "tests/bench/15_overlap/lessons.hpp"

namespace {

using namespace ddp;

std::string few_digits(float value, int digits) {
    std::ostringstream text;
    text << std::setprecision(digits) << value;
    return text.str();
}

// Averages three numbers that are the same on all ranks, in 32 and in 16 bits.
void show_short_numbers(Rank& rank) {
    const std::vector<float> numbers{1.0f / 3, 1e-8f, 60'000};
    auto& device = make_run_scoped<Device>(rank, 1 << 16);
    const auto communicator = make_communicator("native", rank, 1 << 16);
    const auto parameter = std::make_shared<Parameter>("numbers", Tensor(device, {3}, numbers));
    const GradientSizes sizes = gradient_sizes({parameter});
    ArenaBuffer<float> memory = communicator->allocate<float>(BucketPlan::alignment);
    const FlatBuffers gradients(device, {parameter}, first_plan(sizes), memory.share(),
                                memory.size());
    Table table("The average of a number that every rank has", {"sent as", "1/3", "1e-8", "60000"});
    const auto row = [&](const std::string& name, const BucketHook& hook) {
        gradients.view(0).copy_from(numbers);
        hook(*communicator, gradients.bucket(0), device.stream(), name);
        communicator->synchronize(device.stream());
        std::vector<std::string> cells{name};
        for (const float value : gradients.view(0).to_host())
            cells.push_back(few_digits(value, 6));
        table.row(cells);
    };
    const BucketHook hooks[] = {
        compressed_average<__half>(*communicator, gradients),
        compressed_average<__half>(*communicator, gradients, Divide::after),
        compressed_average<__nv_bfloat16>(*communicator, gradients),
    };
    rank.barrier();
    row("float32", average_bucket);
    row("float16", hooks[0]);
    row("float16, divided after", hooks[1]);
    row("bfloat16", hooks[2]);
    rank.barrier();  // the next part allocates: no rank's kernel is under way any more
    if (rank.rank() == 0)
        std::cout << table << "\n";
}

void show_hooks(Rank& rank, const LabelledImages& images, const CommonOptions& common) {
    // A quick training is over before step 10: PowerSGD begins as early as it can.
    const HookTraining training = common.quick ? HookTraining{5, 2} : HookTraining();
    std::vector<std::string> names = hook_names();
    names.insert(names.end(), {"power_sgd 4", "power_sgd 4, no feedback"});
    const bool prints = rank.rank() == 0;
    Table table("Bucket hooks: " + std::to_string(training.steps) + " steps of a small network",
                {"hook", "bytes a step", "error of a step", "of all steps' sum", "loss"});
    CsvWriter csv(prints ? common.csv : "", {"hook", "bytes", "step_error", "sum_error", "loss"});
    for (const std::string& name : names) {
        const HookResult result = learn_with_hook(rank, images, name, training, common.seed);
        table.row({name, format_bytes(static_cast<double>(result.bytes)),
                   format_fixed(100 * result.step_error, 3) + " %",
                   format_fixed(100 * result.sum_error, 3) + " %", format_fixed(result.loss, 3)});
        csv.row({name, result.bytes, result.step_error, result.sum_error, result.loss});
    }
    table.note(
        "Errors are those of the gradients that the optimizer gets, against the exact average over "
        "the ranks. PowerSGD begins at step " +
        std::to_string(training.start_step) + ".");
    if (prints)
        std::cout << table << "\n";
}

// Compares three placements of no_sync.
void show_accumulation(Rank& rank, const LabelledImages& images, const CommonOptions& common) {
    const Accumulation groups = common.quick ? Accumulation{25, 10, 4} : Accumulation();
    Table table("no_sync: " + format_count(groups.micro_batches) + " micro-batches in groups of " +
                    std::to_string(groups.group),
                {"within no_sync", "steps", "all-reduces", "time", "parameters differ by"});
    std::vector<float> first;
    const auto row = [&](const std::string& within, NoSyncAround around) {
        const Accumulated found = learn_in_groups(rank, images, around, groups, common.seed);
        if (first.empty())
            first = found.parameters;
        float difference = 0;
        for (std::size_t i = 0; i < first.size(); i++)
            difference = std::max(difference, std::abs(found.parameters[i] - first[i]));
        table.row({within, format_count(found.steps), format_count(found.all_reduces),
                   format_seconds(found.seconds), few_digits(difference, 2)});
    };
    row("forward and backward", NoSyncAround::forward_and_backward);
    row("backward only", NoSyncAround::backward);
    row("nothing", NoSyncAround::nothing);
    table.note(
        "The forward decides whether a step is reduced, so it must lie within no_sync as well.");
    if (rank.rank() == 0)
        std::cout << table << "\n";
}

int run(World& world, const CommonOptions& common) {
    const FashionMnist data = load_data(world, common);
    show_sending_orders(world);
    world.run([&](Rank& rank) {
        rank.select_device();
        show_short_numbers(rank);
        show_hooks(rank, data.train, common);
        show_accumulation(rank, data.train, common);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options parser(
        "bench_traffic",
        "What gradients sent out of order become, and what bucket hooks and no_sync save.");
    parser.refuse({"--trace"}, "the timeline of a step is in 15_overlap");
    parser.example("--ranks 2", "what two ranks send");
    return run_ranks(argc, argv, parser, run);
}
