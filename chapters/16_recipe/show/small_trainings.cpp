#include "16_recipe/show/small_trainings.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/small_training.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/models.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/naive_ddp.hpp"
#include "11_data_parallel/training_result.hpp"
#include "15_overlap/ddp.hpp"
#include "16_recipe/clip_gradients.hpp"
#include "16_recipe/mixed_precision.hpp"

namespace ddp {
namespace {

constexpr double max_norm = 0.5, recipe_rate = 0.02, drop_probability = 0.5;

// Returns a batch that every rank can fill.
int batch_for(const LabelledImages& images, int ranks) {
    return std::min(32, static_cast<int>(images.count()) / ranks);
}

// Calls `learn` with `steps` batches of share `part` of `parts`, over several epochs if need be.
void for_each_batch(Loader& loader, int steps, std::uint64_t seed, int part, int parts,
                    const std::function<void(const Batch& batch, int step)>& learn) {
    for (int epoch = 1, step = 0; step < steps; epoch++) {
        loader.start_epoch(shard(shuffled(loader.samples(), seed, epoch), part, parts));
        while (const std::optional<Batch> batch = step < steps ? loader.next() : std::nullopt)
            learn(*batch, step++);
    }
}

// Returns the values, or the gradients, of all parameters, one after the other.
std::vector<float> values_of(const Parameters& parameters, bool are_gradients = false) {
    std::vector<float> values;
    for (const auto& parameter : parameters) {
        const Tensor& tensor = are_gradients ? parameter->gradient() : parameter->value;
        const std::vector<float> more = tensor.to_host();
        values.insert(values.end(), more.begin(), more.end());
    }
    return values;
}

bool are_equal(const std::vector<std::uint64_t>& hashes) {
    return std::ranges::all_of(hashes, [&](std::uint64_t hash) { return hash == hashes[0]; });
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); i++)
        sum += std::pow(double{a[i]} - b[i], 2);
    return std::sqrt(sum);
}

// ---- Beside one device

struct RecipeTraining {
    std::vector<float> start, end;  // values of all parameters
    std::uint64_t hash;             // at the end
};

// Trains with this rank's share of each batch, together with the other ranks; or with the whole
// batch, and alone.
RecipeTraining learn_recipe(Rank& rank, const LabelledImages& images, const RecipeVariant& variant,
                            bool is_whole, int steps, std::uint64_t seed) {
    const int part = is_whole ? 0 : rank.rank(), parts = is_whole ? 1 : rank.world_size();
    auto& device = make_run_scoped<Device>(rank, std::size_t{4} << 20);
    const int batch_size =
        batch_for(images, rank.world_size()) * (is_whole ? rank.world_size() : 1);
    auto& loader = make_run_scoped<Loader>(rank, device, images, fashion_mnist_normalisation,
                                           batch_size, LastBatch::drop);
    const bool has_own_masks = variant.has_own_masks && !is_whole;
    auto& masks = make_run_scoped<DropoutMasks>(
        rank,
        seed + static_cast<std::uint64_t>(has_own_masks && !variant.has_same_seed ? part : 0));
    Random random(seed);
    Sequential model("recipe");
    model.add<Flatten>("flatten");
    model.add<Linear>("linear1", device, static_cast<int>(images.image_size()), 64, random);
    model.add<Relu>("relu");
    model.add<Dropout>("dropout", variant.dropout, masks);
    model.add<Linear>("linear2", device, 64, images.classes, random);
    const Parameters parameters = model.parameters();
    std::unique_ptr<Communicator> communicator;
    std::optional<NaiveDdp> ddp;
    if (!is_whole) {
        communicator = make_communicator("native", rank, 1 << 20);
        ddp.emplace(*communicator, device, model);
    }
    Sgd optimizer(parameters, recipe_rate);
    SmallTraining training(device, optimizer);
    const auto backward = [&](Variable loss) {
        loss.tape->backward(loss);
        if (variant.before_average)
            variant.before_average(rank, parameters);
        if (ddp)
            ddp->average_gradients();
        if (variant.after_average)
            variant.after_average(rank, parameters);
    };
    RecipeTraining result{values_of(parameters), {}, 0};
    if (!is_whole)
        rank.barrier();
    for_each_batch(loader, steps, seed, part, parts, [&](const Batch& batch, int step) {
        masks.begin({.step = static_cast<std::uint64_t>(step),
                     .samples = batch.labels.dim(0),
                     .first = has_own_masks ? 0 : part,
                     .stride = has_own_masks ? 1 : parts});
        const auto loss_of = [&](Tape& tape) {
            return cross_entropy(model.forward(tape.constant(batch.images)), batch.labels);
        };
        training.step(loss_of, backward);
    });
    result.end = values_of(parameters);
    result.hash = hash_of(parameters);
    return result;
}

}  // namespace

std::vector<RecipeVariant> recipe_variants() {
    const auto clip = [](const Rank&, const Parameters& parameters) {
        clip_grad_norm(parameters, max_norm);
    };
    const auto clip_on_rank_0 = [](const Rank& rank, const Parameters& parameters) {
        if (rank.rank() == 0)
            clip_grad_norm(parameters, max_norm);
    };
    return {{.name = "clipped after the average", .after_average = clip},
            {.name = "clipped before it, by the rank's own norm", .before_average = clip},
            {.name = "clipped after it, on rank 0 only", .after_average = clip_on_rank_0},
            {.name = "masks by sample", .dropout = drop_probability},
            {.name = "masks by a generator for each rank",
             .dropout = drop_probability,
             .has_own_masks = true},
            {.name = "the same, with the same seed on every rank",
             .dropout = drop_probability,
             .has_own_masks = true,
             .has_same_seed = true}};
}

RecipeResult compare_with_one_device(Rank& rank, const LabelledImages& images,
                                     const RecipeVariant& variant, int steps, std::uint64_t seed) {
    // The one device does it right: it clips, and has no other ranks.
    RecipeVariant right = variant;
    if (variant.before_average || variant.after_average) {
        right.before_average = {};
        right.after_average = recipe_variants()[0].after_average;
    }
    RecipeTraining mine;
    rank.run_part([&] { mine = learn_recipe(rank, images, variant, false, steps, seed); });
    RecipeResult result;
    result.are_equal = are_equal(rank.all_gather(mine.hash));
    // The last rank plays the one device. (No rank trains any more, so it may allocate.)
    rank.run_part([&] {
        if (rank.rank() + 1 != rank.world_size())
            return;
        const RecipeTraining whole = learn_recipe(rank, images, right, true, steps, seed);
        result.difference = distance(mine.end, whole.end) / distance(whole.end, whole.start);
    });
    result.difference = rank.all_gather(result.difference).back();
    return result;
}

// ---- Mixed precision

namespace {

void convert_products(Sequential& model, const std::string& products) {
    if (products == "float16")
        use_mixed_precision<__half>(model);
    else if (products == "bfloat16")
        use_mixed_precision<__nv_bfloat16>(model);
}

GradScaler make_scaler(Device& device, Communicator& communicator, const MixedVariant& variant) {
    const bool asks = variant.found_inf == FoundInf::in_its_own_and_asks;
    return GradScaler(device, variant.scaler, asks ? &communicator : nullptr);
}

// Returns a hook that divides the rank's own gradients and searches them, before the average.
BucketHook unscale_then_average(GradScaler& scaler) {
    return [&scaler](Communicator& communicator, Tensor bucket, Stream& stream,
                     const std::string& name) {
        scaler.unscale_part(bucket, stream);
        average_bucket(communicator, bucket, stream, name);
    };
}

// Returns the mean over the ranks and the last ten steps.
double last_loss(Rank& rank, const std::vector<double>& losses) {
    const std::vector<double> means = mean_of_ranks(rank, losses);
    const auto last = std::min<std::ptrdiff_t>(10, std::ssize(means));
    return std::accumulate(means.end() - last, means.end(), 0.0) / static_cast<double>(last);
}

}  // namespace

MixedResult learn_mixed(Rank& rank, const LabelledImages& images, const MixedVariant& variant,
                        int steps, std::uint64_t seed) {
    auto& device = make_run_scoped<Device>(rank, std::size_t{12} << 20);
    auto& loader = make_run_scoped<Loader>(rank, device, images, fashion_mnist_normalisation,
                                           batch_for(images, rank.world_size()), LastBatch::drop);
    Random random(seed);
    const auto model = make_mlp(device, random, mlp_widths(images, {256, 256}));
    convert_products(*model, variant.products);
    const Parameters parameters = model->parameters();
    const auto communicator = make_communicator("native", rank, ddp_arena_bytes(*model));
    DistributedDataParallel ddp(*communicator, device, *model);
    Sgd optimizer(parameters, recipe_rate);
    GradScaler scaler = make_scaler(device, *communicator, variant);
    if (variant.found_inf != FoundInf::in_the_average)
        ddp.set_bucket_hook(unscale_then_average(scaler));
    Tape tape(device);
    MixedResult result;
    std::vector<double> losses;
    int skipped = 0;
    const auto learn = [&](const Batch& batch, int step) {
        if (!result.are_equal)
            return;
        const Variable loss = cross_entropy(ddp.forward(tape.constant(batch.images)), batch.labels);
        ddp.backward(loss, {}, scaler.scale());
        if (step + 1 == steps)
            result.gradient = values_of(parameters, true);
        skipped += scaler.step(optimizer) ? 0 : 1;
        scaler.update();
        losses.push_back(loss.value().to_host()[0]);
        optimizer.zero_gradients();
        tape.clear();
        result.steps++;
        // Comparing takes time. Only one variant needs it in every step.
        if (variant.found_inf == FoundInf::in_its_own || step + 1 == steps)
            result.are_equal = are_equal(rank.all_gather(hash_of(parameters)));
    };
    rank.barrier();
    for_each_batch(loader, steps, seed, rank.rank(), rank.world_size(), learn);
    communicator->synchronize(device.stream());
    result.skipped = rank.all_gather(skipped);
    result.loss = last_loss(rank, losses);
    return result;
}

std::map<int, double> shares_by_exponent(const std::vector<float>& gradient) {
    std::map<int, double> shares;
    for (const float value : gradient)
        if (value != 0)
            shares[std::ilogb(value)] += 1 / static_cast<double>(gradient.size());
    return shares;
}

double share_rounded_to_0(const std::vector<float>& gradient, const std::string& products,
                          float scale) {
    double lost = 0;
    for (const float value : gradient) {
        float rounded = scale * value;
        if (products == "float16")
            rounded = static_cast<float>(static_cast<__half>(rounded));
        else if (products == "bfloat16")
            rounded = static_cast<float>(static_cast<__nv_bfloat16>(rounded));
        lost += value != 0 && rounded == 0;
    }
    return lost / static_cast<double>(gradient.size());
}

}  // namespace ddp
