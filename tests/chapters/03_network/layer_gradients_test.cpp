// Backward against finite differences, for sizes that no tile, vector or group divides; and the
// rules of the tape: add where something is, compute nothing that nobody wants.
#include <memory>

#include "01_sgd/operations.hpp"
#include "03_network/layers/batch_norm2d.hpp"
#include "03_network/layers/conv2d.hpp"
#include "03_network/layers/sequential.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Layers of each kind, and an input for each.
struct Case {
    std::unique_ptr<Module> layer;
    Shape input;
};
std::vector<Case> all_layers(Device& device) {
    Random random(1);
    std::vector<Case> cases;
    const auto add = [&](std::unique_ptr<Module> layer, Shape input) {
        cases.push_back({std::move(layer), std::move(input)});
    };
    add(std::make_unique<Linear>("linear", device, 5, 7, random), {3, 5});
    add(std::make_unique<Linear>("tiles", device, 3, 35, random), {33, 3});
    add(std::make_unique<Relu>("relu"), {3, 11});
    add(std::make_unique<Flatten>("flatten"), {2, 3, 5});
    add(std::make_unique<Conv2d>("conv", device, Conv2dShape{2, 3, 3, 1, 1}, random), {2, 2, 5, 4});
    add(std::make_unique<Conv2d>("stride", device, Conv2dShape{1, 2, 3, 2, 2}, random),
        {3, 1, 6, 5});
    add(std::make_unique<Conv2d>("even", device, Conv2dShape{2, 1, 2, 3, 0}, random), {2, 2, 7, 8});
    add(std::make_unique<MaxPool2d>("pool", 2), {2, 3, 5, 4});
    add(std::make_unique<MaxPool2d>("overlap", 3, 2), {2, 1, 7, 8});
    add(std::make_unique<MaxPool2d>("gaps", 2, 3), {2, 1, 7, 9});
    add(std::make_unique<BatchNorm2d>("norm", device, 3), {3, 3, 3, 5});
    auto evaluated = std::make_unique<BatchNorm2d>("evaluated", device, 2);
    evaluated->running_mean.copy_from(std::vector<float>{0.5f, -1.0f});
    evaluated->running_var.copy_from(std::vector<float>{0.3f, 2.0f});
    evaluated->set_training(false);
    add(std::move(evaluated), {2, 2, 3, 3});
    return cases;
}

}  // namespace

TEST_CASE("layers: backward agrees with finite differences") {
    Device device;
    for (const Case& one : all_layers(device)) {
        INFO(one.layer->name());
        REQUIRE(message_of([&] { require_layer_gradients(device, *one.layer, one.input); }) == "");
    }
}

TEST_CASE("layers: finite differences notice a wrong gradient") {
    Device device;
    struct Wrong : Module {
        using Module::Module;
        Variable forward(Variable input) override {
            Relu relu("relu");
            const Variable y = relu.forward(input);
            return add(y, input.tape->constant(y.value()));  // twice the value, once the gradient
        }
    } wrong("wrong");
    REQUIRE_THAT(message_of([&] {
                     require_layer_gradients(device, wrong, {2, 3});
                 }),
                 Catch::Matchers::StartsWith("the gradient of input["));
}

TEST_CASE("layers: gradients add up where an input or a parameter is used again") {
    Device device;
    for (const Case& one : all_layers(device)) {
        INFO(one.layer->name());
        const std::vector<float> values = distinct_values(element_count(one.input), 2.0f);
        const auto x = std::make_shared<Parameter>("input", Tensor(device, one.input, values));
        Parameters all = one.layer->parameters();
        all.push_back(x);
        Tape tape(device);
        const auto run = [&](int uses) {
            tape.clear();
            Variable y = one.layer->forward(tape.parameter(x));
            const std::vector<float> weights = random_weights(y.value().size());
            if (uses == 2)
                y = add(y, one.layer->forward(tape.parameter(x)));
            tape.backward(weighted_sum(y, weights));
        };
        run(1);
        std::vector<std::vector<float>> once;
        for (const auto& parameter : all)
            once.push_back(parameter->gradient().to_host());
        run(2);  // on top of the first
        for (std::size_t p = 0; p < all.size(); p++) {
            const std::vector<float> thrice = all[p]->gradient().to_host();
            for (std::size_t i = 0; i < thrice.size(); i++)
                REQUIRE(thrice[i] == Approx(3.0f * once[p][i]).epsilon(1e-4).margin(1e-5));
        }
    }
}

TEST_CASE("layers: nothing is computed for frozen parameters and constant inputs") {
    Device device;
    for (const Case& one : all_layers(device)) {
        INFO(one.layer->name());
        const Tensor input(device, one.input, distinct_values(element_count(one.input), 2.0f));
        for (const auto& frozen : one.layer->parameters()) {
            for (const auto& parameter : one.layer->parameters())
                parameter->is_frozen = parameter == frozen, parameter->clear_gradient();
            Tape tape(device);
            const Variable y = one.layer->forward(tape.constant(input));
            tape.backward(weighted_sum(y, random_weights(y.value().size())));
            for (const auto& parameter : one.layer->parameters())
                REQUIRE(parameter->has_gradient() == (parameter != frozen));
        }
    }
}

TEST_CASE("layers: a convolution of many groups equals its samples, one by one") {
    Device device;
    Random random(1);
    Conv2d conv("conv", device, {32, 3, 3, 1, 1}, random);
    const int batch = 5, pixels = 32 * 28 * 28;
    // Two samples need more than columns_bytes on a CPU, so this is several groups there.
    REQUIRE(2 * 9 * pixels * sizeof(float) > (std::size_t{512} << 10));
    const Tensor x(device, {batch, 32, 28, 28}, distinct_values(batch * pixels, 1.0f));
    Tape tape(device);
    const std::vector<float> together = conv.forward(tape.constant(x)).value().to_host();
    for (int sample = 0; sample < batch; sample++) {
        const Tensor one = x.view(static_cast<std::size_t>(sample) * pixels, {1, 32, 28, 28});
        const std::vector<float> alone = conv.forward(tape.constant(one)).value().to_host();
        for (std::size_t i = 0; i < alone.size(); i++)
            REQUIRE(alone[i] == Approx(together[sample * alone.size() + i]).margin(1e-6));
    }
}

TEST_CASE("layers: Sequential passes everything on, and names a tied parameter once") {
    Device device;
    Random random(1);
    Sequential model("model");
    const Linear& first = model.add<Linear>("linear1", device, 4, 4, random);
    model.add<Relu>("relu1");
    model.add<Flatten>("flatten");
    Sequential& inner = model.add<Sequential>("inner");
    inner.add<Linear>("inner.linear", device, 4, 2, random);
    const BatchNorm2d& norm = inner.add<BatchNorm2d>("inner.norm", device, 2);
    std::vector<std::string> names;
    for (const auto& parameter : model.parameters())
        names.push_back(parameter->name);
    REQUIRE(names == std::vector<std::string>{"linear1.weight", "linear1.bias",
                                              "inner.linear.weight", "inner.linear.bias",
                                              "inner.norm.weight", "inner.norm.bias"});
    REQUIRE(model.buffers().size() == 2);
    REQUIRE(model.buffers()[1].name == "inner.norm.running_var");
    model.set_training(false);
    REQUIRE_FALSE(norm.is_training());
    REQUIRE_FALSE(first.is_training());

    struct Again : Module {  // another use of a layer that is in the model already
        Again(Module& layer) : Module("again"), layer(layer) {}
        Variable forward(Variable input) override { return layer.forward(input); }
        Parameters parameters() const override { return layer.parameters(); }
        Module& layer;
    };
    Sequential tied("tied");
    Linear& linear = tied.add<Linear>("linear", device, 3, 3, random);
    tied.add<Again>(linear);
    REQUIRE(tied.parameters().size() == 2);
    REQUIRE(message_of([&] { require_layer_gradients(device, tied, {2, 3}); }) == "");
}

TEST_CASE("layers: Sequential tells an observer of each layer, in order") {
    Device device;
    Random random(1);
    Sequential model("model");
    model.add<Linear>("linear1", device, 4, 3, random);
    model.add<Relu>("relu1");
    std::vector<std::string> seen;
    model.observe([&](const Module& layer) { seen.push_back(layer.name()); });
    Tape tape(device);
    const Tensor x(device, {2, 4}, distinct_values(8, 1.0f));
    model.forward(tape.constant(x));
    REQUIRE(seen == std::vector<std::string>{"linear1", "relu1"});
    model.observe({});
    model.forward(tape.constant(x));
    REQUIRE(seen.size() == 2);
}

TEST_CASE("layers: a Sequential's layers can be replaced, those of a network within it, too") {
    Device device;
    Random random(1);
    Sequential model("model");
    model.add<Linear>("linear1", device, 3, 3, random);
    Sequential& inner = model.add<Sequential>("inner");
    inner.add<Relu>("relu");
    inner.add<Linear>("linear2", device, 3, 2, random);
    const Parameters before = model.parameters();
    inner.set_training(false);

    struct Wrapped : Module {
        explicit Wrapped(std::unique_ptr<Module> layer)
            : Module("wrapped " + layer->name()), layer(std::move(layer)) {}
        Variable forward(Variable input) override { return layer->forward(input); }
        Parameters parameters() const override { return layer->parameters(); }
        std::unique_ptr<Module> layer;
    };
    std::vector<std::string> asked, seen;
    const Module* wrapped = nullptr;
    model.replace_layers([&](std::unique_ptr<Module> layer) -> std::unique_ptr<Module> {
        asked.push_back(layer->name());
        if (layer->name() != "linear2")
            return layer;
        auto made = std::make_unique<Wrapped>(std::move(layer));
        wrapped = made.get();
        return made;
    });
    REQUIRE(asked == std::vector<std::string>{"linear1", "relu", "linear2"});
    REQUIRE(model.parameters() == before);
    REQUIRE_FALSE(wrapped->is_training());
    inner.observe([&](const Module& layer) { seen.push_back(layer.name()); });
    Tape tape(device);
    model.forward(tape.constant(Tensor(device, {2, 3}, distinct_values(6, 1.0f))));
    REQUIRE(seen == std::vector<std::string>{"relu", "wrapped linear2"});
}

}  // namespace ddp::test
