// What else does every script do? Clipping, dropout, 16-bit products and a scaled loss
// on several ranks, done right and done wrong.
#include <algorithm>
#include <iostream>

#include "05_ranks/world.hpp"
#include "11_data_parallel/replica.hpp"
#include "16_recipe/show/small_trainings.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

void show_beside_one_device(Rank& rank, const LabelledImages& images, int steps,
                            const CommonOptions& common) {
    const bool prints = rank.rank() == 0;
    Table table("Clipping and dropout: " + std::to_string(steps) +
                    " steps beside one device with all samples",
                {"what", "differs by", "replicas"});
    CsvWriter csv(prints ? common.csv : "", {"what", "difference", "equal_replicas"});
    for (const RecipeVariant& variant : recipe_variants()) {
        const RecipeResult result =
            compare_with_one_device(rank, images, variant, steps, common.seed);
        table.row({variant.name, format_fixed(100 * result.difference, 3) + " %",
                   result.are_equal ? "equal" : "differ"});
        csv.row({variant.name, result.difference, int{result.are_equal}});
    }
    table.note(
        "The distance between the parameters, as a share of how far those of one device moved.");
    if (prints)
        std::cout << table << "\n";
}

std::string text_of_scale(float scale) {
    return scale < 1 ? "1/" + text_of_scale(1 / scale)
                     : format_count(static_cast<std::int64_t>(scale));
}

void show_products(Rank& rank, const LabelledImages& images, int steps,
                   const CommonOptions& common) {
    std::vector<float> gradient;  // of the first row, in float32
    Table table("Products of 16-bit numbers: " + std::to_string(steps) + " steps",
                {"products", "scale of the loss", "rounded to 0", "skipped", "loss"});
    const auto row = [&](const MixedVariant& variant) {
        MixedResult result;
        rank.run_part([&] { result = learn_mixed(rank, images, variant, steps, common.seed); });
        if (gradient.empty())
            gradient = result.gradient;
        const auto scale = static_cast<float>(variant.scaler.initial_scale);
        table.row(
            {variant.products, text_of_scale(scale),
             format_fixed(100 * share_rounded_to_0(gradient, variant.products, scale), 3) + " %",
             std::to_string(result.skipped[0]), format_fixed(result.loss, 4)});
    };
    row({});
    row({.products = "float16"});
    row({.products = "float16", .scaler = GradScalerOptions()});
    GradScalerOptions small = without_scaling;
    small.initial_scale = 0x1p-16;
    row({.products = "float16", .scaler = small});
    row({.products = "bfloat16", .scaler = small});
    table.note(
        "Rounded to 0: how much of the first row's last gradient becomes 0 if it is multiplied by "
        "the scale and rounded to the type of the products.");
    if (rank.rank() != 0)
        return;
    std::cout << table << "\n";
    CsvWriter csv(beside(common.csv, "gradient"), {"exponent", "share"});
    for (const auto& [exponent, share] : shares_by_exponent(gradient))
        csv.row({exponent, share});
}

void show_overflow(Rank& rank, const LabelledImages& images, int steps, std::uint64_t seed) {
    Table table(
        "An overflow on some ranks: float16, " + std::to_string(steps) + " steps, first scale 2^21",
        {"infinity is looked for in", "skipped by rank", "steps", "replicas"});
    const auto row = [&](FoundInf found_inf, const std::string& where) {
        const MixedVariant variant{.products = "float16",
                                   .scaler = {.initial_scale = 0x1p21, .growth_interval = 5},
                                   .found_inf = found_inf};
        MixedResult result;
        rank.run_part([&] { result = learn_mixed(rank, images, variant, steps, seed); });
        std::string skipped;
        for (const int count : result.skipped)
            skipped += (skipped.empty() ? "" : " ") + std::to_string(count);
        table.row(
            {where, skipped, std::to_string(result.steps), result.are_equal ? "equal" : "differ"});
    };
    row(FoundInf::in_the_average, "the average");
    row(FoundInf::in_its_own, "the rank's own gradients");
    row(FoundInf::in_its_own_and_asks, "the same, and all ranks are asked");
    table.note("The run ends at the first step after which the replicas' hashes differ.");
    if (rank.rank() == 0)
        std::cout << table << "\n";
}

int run(World& world, const CommonOptions& common) {
    const FashionMnist data = load_data(world, common);
    const int steps = common.quick ? 3 : 40;
    world.run([&](Rank& rank) {
        rank.select_device();
        show_beside_one_device(rank, data.train, std::min(steps, 10), common);
        show_products(rank, data.train, steps, common);
        show_overflow(rank, data.train, std::min(steps, 12), common.seed);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options parser("recipe", "What else does every script do? Clipping, dropout, 16-bit products.");
    parser.refuse({"--trace"}, "the timeline of a step is in 15_overlap");
    parser.example("--ranks 2", "two ranks beside one device");
    parser.example("--processes 4", "ranks that are processes");
    return run_ranks(argc, argv, parser, run);
}
