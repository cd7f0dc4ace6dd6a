// What training scripts add to a step: clipping, loss scaling, 16-bit products, dropout. Each is
// PyTorch's, and several ranks do what one does with all samples.
#include <algorithm>
#include <cmath>
#include <limits>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "16_recipe/clip_gradients.hpp"
#include "16_recipe/dropout.hpp"
#include "16_recipe/grad_scaler.hpp"
#include "16_recipe/mixed_precision.hpp"
#include "tests/chapters/15_overlap/replica.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

// A parameter with this gradient, and the value 0 everywhere.
std::shared_ptr<Parameter> with_gradient(Device& device, const Values& gradient) {
    const auto size = static_cast<int>(gradient.size());
    const auto parameter = std::make_shared<Parameter>(
        "parameter", Tensor(device, {size}, Values(gradient.size(), 0.0f)));
    parameter->gradient_for_writing().copy_from(gradient);
    return parameter;
}

// ---- Several ranks beside one

// What a training adds to its steps.
struct Recipe {
    double max_norm = 0;  // 0: no clipping
    bool is_scaled = false;
    bool has_half = false;
    double dropout = 0;
    int first_step = 0;  // of six
};

constexpr int batch_size = 12;

std::unique_ptr<Sequential> make_recipe_model(Device& device, Random& random, const Recipe& recipe,
                                              const DropoutMasks& masks) {
    auto model = std::make_unique<Sequential>("model");
    model->add<Flatten>("flatten");
    model->add<Dropout>("dropout1", recipe.dropout / 2, masks);
    model->add<Linear>("linear1", device, 64, 13, random);
    model->add<Relu>("relu");
    model->add<Dropout>("dropout2", recipe.dropout, masks);
    model->add<Linear>("linear2", device, 13, 10, random);
    if (recipe.has_half)
        use_mixed_precision<__half>(*model);
    return model;
}

// Returns all parameters of rank 0 after six steps, each of which sees twelve samples.
Values learn(int ranks, const Recipe& recipe) {
    World world(thread_options(ranks));
    Values values;
    world.run([&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        Random random(3);
        auto& masks = make_run_scoped<DropoutMasks>(rank, 41);
        const auto model = make_recipe_model(device, random, recipe, masks);
        const auto communicator = make_communicator("native", rank, ddp_arena_bytes(*model));
        DistributedDataParallel ddp(*communicator, device, *model, {.bucket_cap_bytes = 300});
        Sgd optimizer(model->parameters(), 0.1);
        GradScaler scaler(device, {.initial_scale = 256});
        Tape tape(device);
        rank.barrier();
        for (int step = recipe.first_step; step < recipe.first_step + 6; step++) {
            const std::vector<int> samples =
                part_of(batch_size * step, batch_size * (step + 1), rank.rank(), rank.world_size());
            const Batch batch = batch_of(device, samples);
            masks.begin({.step = static_cast<std::uint64_t>(step),
                         .samples = static_cast<int>(samples.size()),
                         .first = rank.rank(),
                         .stride = rank.world_size()});
            const Variable loss =
                cross_entropy(ddp.forward(tape.constant(batch.images)), batch.labels);
            ddp.backward(loss, {}, recipe.is_scaled ? scaler.scale() : 1.0f);
            if (recipe.is_scaled)
                scaler.unscale(model->parameters());
            if (recipe.max_norm > 0)
                clip_grad_norm(model->parameters(), recipe.max_norm);
            if (recipe.is_scaled)
                scaler.step(optimizer), scaler.update();
            else
                optimizer.step();
            optimizer.zero_gradients();
            tape.clear();
        }
        communicator->synchronize(device.stream());
        require_equal_replicas(rank, model->parameters());
        if (rank.rank() == 0)
            for (const auto& parameter : model->parameters())
                for (const float value : parameter->value.to_host())
                    values.push_back(value);
    });
    return values;
}

double largest_difference(const Values& a, const Values& b) {
    double largest = a.size() == b.size() && !a.empty() ? 0 : infinity;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); i++)
        largest = std::max(largest, std::abs(double{a[i]} - b[i]));
    return largest;
}

}  // namespace

// ---- Clipping

TEST_CASE("clip: norm and gradients are PyTorch's, clipped or not") {
    Device device;
    for (const char* file : {"clip_grad_norm.txt", "clip_grad_norm_small.txt"}) {
        const Golden golden = read_golden(file);
        const Values& most = golden.tensor("max_norms").values;
        for (std::size_t c = 0; c < most.size(); c++) {
            CAPTURE(file, most[c]);
            Parameters parameters;
            for (const std::string k : {"0", "1", "2"})
                parameters.push_back(with_gradient(device, golden.tensor("gradient" + k).values));
            const auto without = std::make_shared<Parameter>("without", Tensor(device, {3}));
            Parameters all = parameters;
            all.insert(all.begin() + 1, without);
            const float norm = clip_grad_norm(all, most[c]).to_host()[0];
            REQUIRE(norm == Approx(golden.tensor("norms").values[c]).epsilon(1e-6));
            for (std::size_t k = 0; k < 3; k++) {
                const std::string name = "clipped" + std::to_string(c) + "." + std::to_string(k);
                REQUIRE(worst_difference(parameters[k]->gradient().to_host(), golden.tensor(name),
                                         1e-6, 0) == "");
            }
            REQUIRE_FALSE(without->has_gradient());
        }
    }
}

TEST_CASE("clip: the norm counts every element once, and its bits are the same each time") {
    Device device;
    for (const std::size_t size : {1, 31, 4097, 300'001}) {
        Values gradient(size);
        double squares = 0;
        for (std::size_t i = 0; i < size; i++) {
            gradient[i] = 0.01f * static_cast<float>(i % 97) - 0.3f;
            squares += double{gradient[i]} * gradient[i];
        }
        const Parameters parameters{with_gradient(device, gradient),
                                    with_gradient(device, {3.0f, -4.0f})};
        const float first = clip_grad_norm(parameters, 1e6).to_host()[0];
        REQUIRE(first == Approx(std::sqrt(squares + 25)).epsilon(1e-7));
        REQUIRE(clip_grad_norm(parameters, 1e6).to_host()[0] == first);
        REQUIRE(parameters[0]->gradient().to_host() == gradient);  // the factor is 1
    }
}

TEST_CASE("clip: an infinite norm leaves NaN") {
    Device device;
    for (const float bad : {infinity, nan_value}) {
        const Parameters parameters{with_gradient(device, {1, bad, 2})};
        REQUIRE_FALSE(std::isfinite(clip_grad_norm(parameters, 1).to_host()[0]));
        REQUIRE(std::isnan(parameters[0]->gradient().to_host()[1]));
    }
}

TEST_CASE("clip: what makes no sense is refused") {
    Device device;
    const Parameters parameters{with_gradient(device, {1})};
    for (const double wrong : {0.0, -1.0, double{nan_value}})
        REQUIRE(has(message_of([&] { clip_grad_norm(parameters, wrong); }),
                    "it must be a positive number, such as 1"));
    parameters[0]->clear_gradient();
    REQUIRE(message_of([&] { clip_grad_norm(parameters, 1); }) ==
            "there is no gradient to clip: clip after backward");
}

TEST_CASE("clip: after the average, ranks do what one rank does") {
    const Recipe recipe{.max_norm = 0.25};
    const Values one = learn(1, recipe);
    REQUIRE(largest_difference(one, learn(1, {})) > 1e-2);  // it does clip
    for (const int ranks : {2, 3, 4}) {
        CAPTURE(ranks);
        REQUIRE(largest_difference(learn(ranks, recipe), one) < 1e-6);
    }
}

// ---- Loss scaling

TEST_CASE("scaler: scales, skipped steps and parameters are PyTorch's") {
    Device device;
    for (const char* file :
         {"grad_scaler.txt", "grad_scaler_factors.txt", "grad_scaler_largest.txt"}) {
        CAPTURE(file);
        const Golden golden = read_golden(file);
        const Values& gradients = golden.tensor("gradients").values;
        const Values& overflows = golden.tensor("overflows").values;
        GradScaler scaler(device,
                          {.initial_scale = golden.number("init_scale"),
                           .growth_factor = golden.number("growth_factor"),
                           .backoff_factor = golden.number("backoff_factor"),
                           .growth_interval = static_cast<int>(golden.number("growth_interval"))});
        const auto parameter =
            std::make_shared<Parameter>("parameter", tensor_of(device, golden.tensor("parameter")));
        Sgd optimizer({parameter}, 0.5, 0.0);
        for (std::size_t step = 0; step < overflows.size(); step++) {
            CAPTURE(step);
            Values gradient(gradients.begin() + 3 * static_cast<std::ptrdiff_t>(step),
                            gradients.begin() + 3 * static_cast<std::ptrdiff_t>(step) + 3);
            for (float& value : gradient)
                value *= scaler.scale();
            if (overflows[step] != 0)
                gradient[1] = overflows[step] == 1 ? infinity : nan_value;
            parameter->gradient_for_writing().copy_from(gradient);
            REQUIRE(scaler.step(optimizer) == (overflows[step] == 0));
            scaler.update();
            REQUIRE(scaler.scale() == golden.tensor("scales").values[step]);
            const Values& after = golden.tensor("after").values;
            const GoldenTensor row{{3},
                                   {after.begin() + 3 * static_cast<std::ptrdiff_t>(step),
                                    after.begin() + 3 * static_cast<std::ptrdiff_t>(step) + 3}};
            REQUIRE(worst_difference(parameter->value.to_host(), row, 1e-6, 1e-7) == "");
        }
    }
}

TEST_CASE("scaler: one bad element anywhere is found, and gradients are divided") {
    Device device;
    for (const std::size_t size : {1, 5, 1000, 4099})
        for (const std::size_t bad : {std::size_t{0}, size / 2, size - 1}) {
            GradScaler scaler(device, {.initial_scale = 8});
            Values gradient(size, 24.0f);
            const Parameters parameters{with_gradient(device, {16, -8}),
                                        with_gradient(device, gradient)};
            Sgd optimizer(parameters, 1.0, 0.0);
            scaler.unscale(parameters);
            REQUIRE(parameters[0]->gradient().to_host() == Values{2, -1});
            REQUIRE(parameters[1]->gradient().to_host() == Values(size, 3.0f));
            REQUIRE(scaler.step(optimizer));
            scaler.update();
            gradient[bad] = bad % 2 == 0 ? -infinity : nan_value;
            parameters[1]->gradient_for_writing().copy_from(gradient);
            REQUIRE_FALSE(scaler.step(optimizer));
            REQUIRE(parameters[0]->value.to_host() == Values{-2, 1});  // of the first step
        }
}

TEST_CASE("scaler: calls out of order and settings that make no sense are refused") {
    Device device;
    const Parameters parameters{with_gradient(device, {1})};
    GradScaler scaler(device);
    REQUIRE(scaler.scale() == 65536);
    REQUIRE(message_of([&] { scaler.update(); }) == "there was no step() since the last update()");
    scaler.unscale(parameters);
    REQUIRE(has(message_of([&] { scaler.unscale(parameters); }), "call update() once a step"));
    for (const GradScalerOptions& wrong :
         {GradScalerOptions{.initial_scale = 0}, GradScalerOptions{.growth_factor = 1},
          GradScalerOptions{.backoff_factor = 1}, GradScalerOptions{.backoff_factor = 0},
          GradScalerOptions{.growth_interval = 0}})
        REQUIRE(has(message_of([&] { GradScaler(device, wrong); }), "such as 2, 0.5, 65536"));
}

TEST_CASE("scaler: ranks with different gradients agree only if they ask each other") {
    for (const bool asks : {true, false})
        for (const int ranks : {2, 3, 4})
            for (int bad_rank = 0; bad_rank < ranks; bad_rank++) {
                CAPTURE(asks, ranks, bad_rank);
                World world(thread_options(ranks));
                std::vector<float> scales(static_cast<std::size_t>(ranks));
                const std::string failure = failure_of(world, [&](Rank& rank) {
                    auto& device = make_run_scoped<Device>(rank, test_memory);
                    const auto communicator = make_communicator("native", rank, 1 << 16);
                    GradScaler alone(device), together(device, {}, communicator.get());
                    GradScaler& scaler = asks ? together : alone;
                    const auto w = with_gradient(device, {1, 2});
                    Sgd optimizer({w}, 0.5);
                    rank.barrier();
                    for (int step = 0; step < 3; step++) {
                        const bool is_bad = step == 1 && rank.rank() == bad_rank;
                        w->gradient_for_writing().copy_from(Values{1, is_bad ? infinity : 2});
                        const bool stepped = scaler.step(optimizer);
                        if (stepped == (asks ? step == 1 : is_bad))
                            throw std::runtime_error("step " + std::to_string(step));
                        scaler.update();
                    }
                    scales[static_cast<std::size_t>(rank.rank())] = scaler.scale();
                    require_equal_replicas(rank, {w});
                });
                for (int r = 0; r < ranks; r++)
                    REQUIRE(scales[static_cast<std::size_t>(r)] ==
                            (asks || r == bad_rank ? 32768 : 65536));
                REQUIRE(failure.empty() == asks);
                if (!asks && bad_rank > 0)
                    REQUIRE(has(failure, "rank " + std::to_string(bad_rank)));
            }
}

TEST_CASE("scaler: scales of powers of two change no bit of a training in float32") {
    const Values plain = learn(1, {.max_norm = 0.25});
    REQUIRE(learn(1, {.max_norm = 0.25, .is_scaled = true}) == plain);
    for (const int ranks : {2, 3})
        REQUIRE(largest_difference(learn(ranks, {.max_norm = 0.25, .is_scaled = true}), plain) <
                1e-6);
}

// ---- Mixed precision

namespace {

// Returns how many of the values are not the expected ones, where one of T's last places is
// allowed: sums in another order may round to the neighbour.
template <class T>
std::size_t others(const Values& found, const GoldenTensor& expected) {
    constexpr double last_place = std::is_same_v<T, __half> ? 0x1p-10 : 0x1p-7;
    REQUIRE(found.size() == expected.values.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < found.size(); i++) {
        REQUIRE(found[i] == static_cast<float>(static_cast<T>(found[i])));  // it is a T
        REQUIRE(found[i] == Approx(expected.values[i]).epsilon(last_place).margin(1e-6));
        count += found[i] != expected.values[i];
    }
    return count;
}

template <class T>
void require_pytorch(const std::string& file) {
    Device device;
    const Golden golden = read_golden(file);
    Random random(1);
    auto linear = std::make_unique<Linear>("linear", device, 37, 21, random);
    set_parameters(*linear, golden);
    const auto weight = linear->weight, bias = linear->bias;
    MixedLinear<T> layer(std::move(linear));
    const auto input =
        std::make_shared<Parameter>("input", tensor_of(device, golden.tensor("input")));
    Tape tape(device);
    const Variable y = layer.forward(tape.parameter(input));
    tape.backward(weighted_sum(y, golden.tensor("output_gradient").values));
    CAPTURE(file);
    REQUIRE(others<T>(y.value().to_host(), golden.tensor("output")) <= 2);
    REQUIRE(others<T>(weight->gradient().to_host(), golden.tensor("weight_gradient")) <= 8);
    REQUIRE(others<T>(bias->gradient().to_host(), golden.tensor("bias_gradient")) <= 1);
    REQUIRE(others<T>(input->gradient().to_host(), golden.tensor("input_gradient")) <= 4);
    // Gradients of a second backward are added in float32.
    const Values once = weight->gradient().to_host();
    Tape again(device);
    again.backward(weighted_sum(layer.forward(again.parameter(input)),
                                golden.tensor("output_gradient").values));
    const Values twice = weight->gradient().to_host();
    for (std::size_t i = 0; i < once.size(); i++)
        REQUIRE(twice[i] == 2 * once[i]);
}

}  // namespace

TEST_CASE("mixed precision: Linear is PyTorch's under autocast") {
    require_pytorch<__nv_bfloat16>("linear_bfloat16.txt");
    require_pytorch<__half>("linear_float16.txt");
}

TEST_CASE("mixed precision: small gradients become 0 in float16 unless the loss is scaled") {
    Device device;
    for (const float scale : {1.0f, 65536.0f}) {
        Random random(1);
        Sequential model("model");
        const Linear& layer = model.add<Linear>("linear", device, 3, 2, random, false);
        const auto weight = layer.weight;
        use_mixed_precision<__half>(model);
        Tape tape(device);
        const Variable y = model.forward(tape.constant(Tensor(device, {1, 3}, Values{1, 2, 0.5f})));
        tape.backward(weighted_sum(y, {0x1p-26f, 0x1p-20f}), {}, scale);
        const Values found = weight->gradient().to_host();
        const float small = scale == 1 ? 0 : 0x1p-26f * scale;
        REQUIRE(found == Values{small, 2 * small, small / 2, 0x1p-20f * scale, 0x1p-19f * scale,
                                0x1p-21f * scale});
    }
    // Too large a scale: the gradient is infinite, not merely large.
    Random random(1);
    Sequential model("model");
    const auto weight = model.add<Linear>("linear", device, 1, 1, random).weight;
    use_mixed_precision<__half>(model);
    Tape tape(device);
    const Variable y = model.forward(tape.constant(Tensor(device, {1, 1}, Values{1})));
    tape.backward(weighted_sum(y, {1}), {}, 65536);
    REQUIRE(weight->gradient().to_host() == Values{infinity});
}

TEST_CASE("mixed precision: master weights collect steps that a 16-bit weight would lose") {
    Device device;
    Random random(1);
    Sequential model("model");
    const auto weight = model.add<Linear>("linear", device, 1, 1, random, false).weight;
    weight->value.copy_from(Values{1});
    use_mixed_precision<__half>(model);
    REQUIRE(model.parameters() == Parameters{weight});
    Sgd optimizer(model.parameters(), 0x1p-13, 0.0);  // 1 - 2^-13 rounds to 1 in float16
    for (int step = 0; step < 8; step++) {
        Tape tape(device);
        const Variable y = model.forward(tape.constant(Tensor(device, {1, 1}, Values{1})));
        tape.backward(weighted_sum(y, {1}));
        optimizer.step();
        optimizer.zero_gradients();
    }
    REQUIRE(weight->value.to_host() == Values{1 - 0x1p-10f});
}

TEST_CASE("mixed precision: with a scaler, ranks learn what one learns, as near as float16 is") {
    const Recipe recipe{.is_scaled = true, .has_half = true};
    const Values one = learn(1, recipe);
    REQUIRE(largest_difference(one, learn(1, {})) > 1e-6);
    REQUIRE(largest_difference(one, learn(1, {})) < 3e-3);
    for (const int ranks : {2, 3, 4})
        REQUIRE(largest_difference(learn(ranks, recipe), one) < 2e-3);
}

TEST_CASE("mixed precision: a wrong input is refused by name") {
    Device device;
    Random random(1);
    Sequential model("model");
    model.add<Linear>("head", device, 3, 2, random);
    use_mixed_precision<__half>(model);
    Tape tape(device);
    REQUIRE(message_of([&] {
                model.forward(tape.constant(Tensor(device, {1, 4}, Values(4))));
            }) == "head takes [batch, 3], not [1, 4]");
}

// ---- Dropout

namespace {

// Returns what the layer makes of ones, [samples * rows, columns].
Values dropped(Device& device, Dropout& layer, int rows, int columns) {
    Tape tape(device);
    const Values ones(static_cast<std::size_t>(rows * columns), 1.0f);
    return layer.forward(tape.constant(Tensor(device, {rows, columns}, ones))).value().to_host();
}

}  // namespace

TEST_CASE("dropout: drops its share, and keeps the expected value") {
    Device device;
    DropoutMasks masks(7);
    masks.begin({.step = 3, .samples = 100});
    for (const double probability : {0.1, 0.5, 0.8}) {
        Dropout layer("dropout", probability, masks);
        const Values values = dropped(device, layer, 100, 200);
        double sum = 0;
        std::size_t zeros = 0;
        for (const float value : values) {
            if (value != 0)
                REQUIRE(value == Approx(1 / (1 - probability)).epsilon(1e-6));
            zeros += value == 0;
            sum += value;
        }
        REQUIRE(static_cast<double>(zeros) / 20'000 == Approx(probability).margin(0.012));
        REQUIRE(sum / 20'000 == Approx(1).margin(0.06));
    }
    Dropout none("none", 0, masks), all("all", 1, masks);
    REQUIRE(dropped(device, none, 100, 3) == Values(300, 1.0f));
    REQUIRE(dropped(device, all, 100, 3) == Values(300, 0.0f));
}

TEST_CASE("dropout: evaluation changes nothing") {
    Device device;
    const DropoutMasks masks(7);  // not begun: evaluation needs no masks
    Dropout layer("dropout", 0.5, masks);
    layer.set_training(false);
    REQUIRE(dropped(device, layer, 5, 4) == Values(20, 1.0f));
}

TEST_CASE("dropout: backward agrees with finite differences, and is added where x is used again") {
    Device device;
    DropoutMasks masks(9);
    masks.begin({.step = 5, .samples = 3, .first = 1, .stride = 2});
    Dropout layer("dropout", 0.4, masks);
    REQUIRE(message_of([&] { require_layer_gradients(device, layer, {6, 7}); }) == "");
    const auto x = std::make_shared<Parameter>("x", Tensor(device, {3, 7}, distinct_values(21, 1)));
    for (int pass = 1; pass <= 2; pass++) {  // the second is added to the first
        Tape tape(device);
        tape.backward(weighted_sum(layer.forward(tape.parameter(x)), Values(21, 1.0f)));
        Values mask = dropped(device, layer, 3, 7);
        for (float& value : mask)
            value *= static_cast<float>(pass);
        REQUIRE(x->gradient().to_host() == mask);
    }
}

TEST_CASE("dropout: another mask for another step, layer, seed and sample; the same for the same") {
    Device device;
    const auto mask = [&](std::uint64_t seed, const std::string& name, const DropoutStep& step) {
        DropoutMasks masks(seed);
        masks.begin(step);
        Dropout layer(name, 0.5, masks);
        return dropped(device, layer, 4, 64);
    };
    const Values first = mask(1, "dropout1", {.step = 8, .samples = 4});
    REQUIRE(mask(1, "dropout1", {.step = 8, .samples = 4}) == first);  // as after a restart
    REQUIRE(mask(1, "dropout1", {.step = 9, .samples = 4}) != first);
    REQUIRE(mask(1, "dropout2", {.step = 8, .samples = 4}) != first);
    REQUIRE(mask(2, "dropout1", {.step = 8, .samples = 4}) != first);
    REQUIRE(mask(1, "dropout1", {.step = 8, .samples = 4, .first = 4}) != first);
    const Values row(first.begin(), first.begin() + 64),
        next(first.begin() + 64, first.begin() + 128);
    REQUIRE(row != next);
}

TEST_CASE("dropout: a sample has the same mask on any rank, in any micro-batch and layout") {
    Device device;
    DropoutMasks masks(5);
    Dropout layer("dropout", 0.5, masks);
    constexpr int samples = 12, features = 10;
    masks.begin({.step = 2, .samples = samples});
    const Values whole = dropped(device, layer, samples, features);
    masks.begin({.step = 2, .samples = samples});
    REQUIRE(dropped(device, layer, samples * 5, features / 5) == whole);  // [batch * tokens, ...]
    for (const int ranks : {2, 3, 4})
        for (int r = 0; r < ranks; r++)
            for (const bool strided : {true, false}) {
                const int mine = samples / ranks;
                masks.begin({.step = 2,
                             .samples = mine,
                             .first = strided ? r : r * mine,
                             .stride = strided ? ranks : 1});
                const Values part = dropped(device, layer, mine, features);
                for (int s = 0; s < mine; s++) {
                    const int global = strided ? r + s * ranks : r * mine + s;
                    for (int f = 0; f < features; f++)
                        REQUIRE(part[static_cast<std::size_t>(s * features + f)] ==
                                whole[static_cast<std::size_t>(global * features + f)]);
                }
            }
}

TEST_CASE("dropout: ranks learn what one rank learns, and it does drop") {
    const Recipe recipe{.dropout = 0.3};
    const Values one = learn(1, recipe);
    REQUIRE(largest_difference(one, learn(1, {})) > 1e-2);
    for (const int ranks : {2, 3, 4}) {
        CAPTURE(ranks);
        REQUIRE(largest_difference(learn(ranks, recipe), one) < 1e-6);
    }
}

TEST_CASE("dropout: what makes no sense is refused") {
    Device device;
    DropoutMasks masks(1);
    for (const double wrong : {-0.1, 1.1, double{nan_value}})
        REQUIRE(has(message_of([&] { Dropout("drop", wrong, masks); }), "it must be from 0 to 1"));
    Dropout layer("drop", 0.5, masks);
    REQUIRE(has(message_of([&] { dropped(device, layer, 4, 2); }),
                "drop got [4, 2] for 0 samples: call DropoutMasks::begin"));
    masks.begin({.samples = 3});
    REQUIRE(has(message_of([&] { dropped(device, layer, 4, 2); }), "for 3 samples"));
    for (const DropoutStep& wrong :
         {DropoutStep{.samples = 0}, DropoutStep{.samples = 1, .first = -1},
          DropoutStep{.samples = 1, .stride = 0}})
        REQUIRE(has(message_of([&] { masks.begin(wrong); }), "the number of samples"));
}

}  // namespace ddp::test
