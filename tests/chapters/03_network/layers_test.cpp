// Every layer against PyTorch: forward, and backward from a given gradient of the output.
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/batch_norm2d.hpp"
#include "03_network/layers/conv2d.hpp"
#include "03_network/layers/initialisers.hpp"
#include "03_network/layers/linear_relu.hpp"
#include "03_network/layers/matrix.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// A weight's gradient is a sum of hundreds of products of about 1, and on each processor BLAS adds
// them up in another order, PyTorch's too: what is left of cancelled terms may differ by some 1e-6.
constexpr double relative = 1e-5;
constexpr double absolute = 1e-5;

// Runs the layer both ways; names in the file begin with `prefix`. Empty if all is as it is there.
std::string differences(Device& device, Module& layer, const Golden& golden,
                        const std::string& prefix = "") {
    const auto x =
        std::make_shared<Parameter>("input", tensor_of(device, golden.tensor(prefix + "input")));
    Tape tape(device);
    const Variable y = layer.forward(tape.parameter(x));
    std::string found;
    const auto compare = [&](const Tensor& tensor, const std::string& name) {
        const GoldenTensor& expected = golden.tensor(prefix + name);
        if (tensor.shape() != Shape(expected.shape.begin(), expected.shape.end()))
            found += name + " has the shape " + to_string(tensor.shape()) + "; ";
        const std::string difference =
            worst_difference(tensor.to_host(), expected, relative, absolute);
        found += difference.empty() ? "" : name + ": " + difference + "; ";
    };
    compare(y.value(), "output");
    tape.backward(weighted_sum(y, golden.tensor(prefix + "output_gradient").values));
    compare(x->gradient(), "input_gradient");
    for (const auto& parameter : layer.parameters()) {
        compare(parameter->gradient(),
                parameter->name.substr(parameter->name.rfind('.') + 1) + "_gradient");
        parameter->clear_gradient();
    }
    return found;
}

}  // namespace

TEST_CASE("layers: Linear is PyTorch's") {
    Device device;
    Random random(1);
    for (const bool has_bias : {true, false}) {
        const Golden golden = read_golden(has_bias ? "linear.txt" : "linear_no_bias.txt");
        Linear layer("linear", device, 37, 21, random, has_bias);
        set_parameters(layer, golden);
        REQUIRE(differences(device, layer, golden) == "");
    }
}

TEST_CASE("layers: ReLU is PyTorch's") {
    Device device;
    Relu layer("relu");
    REQUIRE(differences(device, layer, read_golden("relu.txt")) == "");
}

// ---- Linear and ReLU in one layer

// Three linear layers, of 37 to 70, 131 and 5 numbers, and what is behind them: a Relu behind the
// first, another in a network within the network, and none behind the last. The first of them has a
// bias that is not learned, and the second none, if asked for.
std::unique_ptr<Sequential> make_three_layers(Device& device, bool freezes, bool has_bias) {
    Random random(5);
    auto network = std::make_unique<Sequential>("network");
    network->add<Linear>("one", device, 37, 70, random).bias->is_frozen = freezes;
    network->add<Relu>("relu1");
    auto& inner = network->add<Sequential>("inner");
    inner.add<Linear>("two", device, 70, 131, random, has_bias);
    inner.add<Relu>("relu2");
    network->add<Linear>("three", device, 131, 5, random);
    return network;
}

// The values and gradients of two forwards and backwards, whose gradients add up; `layers` counts
// the layers that have said that they have computed something.
std::vector<std::vector<float>> results_of(Device& device, Sequential& network, int& layers) {
    Random random(6);
    std::vector<std::vector<float>> results;
    network.observe([&](const Module&) { layers++; });
    Tape tape(device);
    for (const int batch : {3, 67}) {
        tape.clear();
        std::vector<float> values = uniform(device, {batch, 37}, 1.0f, random).to_host();
        values[40] = std::numeric_limits<float>::quiet_NaN();
        const auto x = std::make_shared<Parameter>("input", Tensor(device, {batch, 37}, values));
        const Variable y = network.forward(tape.parameter(x));
        std::vector<int> labels(static_cast<std::size_t>(batch), 3);
        tape.backward(cross_entropy(y, Labels(device, {batch}, labels)));
        results.push_back(y.value().to_host());
        results.push_back(x->gradient().to_host());
    }
    for (const auto& parameter : network.parameters())
        if (!parameter->is_frozen)
            results.push_back(parameter->gradient().to_host());
    return results;
}

bool are_same_bits(const std::vector<std::vector<float>>& a,
                   const std::vector<std::vector<float>>& b) {
    bool are_same = a.size() == b.size();
    for (std::size_t i = 0; are_same && i < a.size(); i++)
        are_same = a[i].size() == b[i].size() &&
                   std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) == 0;
    return are_same;
}

TEST_CASE("layers: Linear and ReLU in one layer give the bits of two") {
    Device device;
    for (const bool freezes : {false, true})
        for (const bool has_bias : {true, false}) {
            const auto plain = make_three_layers(device, freezes, has_bias);
            const auto fused = make_three_layers(device, freezes, has_bias);
            const Parameters before = fused->parameters();
            fuse_linear_relu(*fused);
            REQUIRE(fused->parameters() == before);
            int layers = 0, fewer = 0;
            const auto expected = results_of(device, *plain, layers);
            REQUIRE(are_same_bits(results_of(device, *fused, fewer), expected));
            REQUIRE(layers == 2 * 4);
            REQUIRE(fewer == 2 * 3);
        }
}

TEST_CASE("layers: what has been made one layer refuses a wrong shape, and keeps its mode") {
    Device device;
    const auto network = make_three_layers(device, false, true);
    network->set_training(false);
    fuse_linear_relu(*network);
    network->observe([](const Module& layer) { REQUIRE_FALSE(layer.is_training()); });
    Tape tape(device);
    network->forward(tape.constant(constant(device, {2, 37}, 1.0f)));
    REQUIRE(message_of([&] {
                network->forward(tape.constant(constant(device, {2, 36}, 1.0f)));
            }) == "one takes [batch, 37], not [2, 36]");
}

TEST_CASE("layers: a bias is added to a product where it lies, as a GPU does") {
    Device device;
    const std::vector<float> product{1, -2, 3, -4, 5, -6}, bias{10, 1, -4};
    const auto after = [&](bool has_bias, Activation activation) {
        Tensor y(device, {2, 3}, product);
        const Tensor b(device, {3}, bias);
        add_bias(device, 2, 3, has_bias ? b.data() : nullptr, y.data(), activation);
        return y.to_host();
    };
    REQUIRE(after(true, Activation::none) == std::vector<float>{11, -1, -1, 6, 6, -10});
    REQUIRE(after(true, Activation::relu) == std::vector<float>{11, 0, 0, 6, 6, 0});
    REQUIRE(after(false, Activation::none) == product);
    REQUIRE(after(false, Activation::relu) == std::vector<float>{1, 0, 3, 0, 5, 0});
}

TEST_CASE("layers: Flatten is PyTorch's") {
    Device device;
    Flatten layer("flatten");
    REQUIRE(differences(device, layer, read_golden("flatten.txt")) == "");
}

TEST_CASE("layers: Conv2d is PyTorch's") {
    Device device;
    Random random(1);
    const auto files = golden_files("conv2d_");
    REQUIRE(files.size() == 8);
    for (const std::string& file : files) {
        INFO(file);
        const Golden golden = read_golden(file);
        const auto setting = [&](const char* name) {
            return static_cast<int>(golden.number(name));
        };
        Conv2d layer("conv", device,
                     {3, 4, setting("kernel"), setting("stride"), setting("padding")}, random);
        set_parameters(layer, golden);
        REQUIRE(differences(device, layer, golden) == "");
    }
}

TEST_CASE("layers: MaxPool2d is PyTorch's") {
    Device device;
    for (const int kernel : {2, 3}) {
        const Golden golden = read_golden("max_pool2d_k" + std::to_string(kernel) + "_s2.txt");
        MaxPool2d layer("pool", kernel, 2);
        REQUIRE(differences(device, layer, golden) == "");
    }
}

TEST_CASE("layers: BatchNorm2d in training is PyTorch's, its running averages too") {
    Device device;
    const Golden golden = read_golden("batch_norm2d_train.txt");
    REQUIRE(static_cast<float>(golden.number("eps")) == BatchNorm2d::eps);
    REQUIRE(static_cast<float>(golden.number("momentum")) == BatchNorm2d::momentum);
    BatchNorm2d layer("norm", device, 3);
    set_parameters(layer, golden);
    for (const std::string step : {"step1.", "step2."}) {
        INFO(step);
        REQUIRE(differences(device, layer, golden, step) == "");
        for (const NamedTensor& buffer : layer.buffers()) {
            const std::string name = step + buffer.name.substr(buffer.name.find('.') + 1);
            REQUIRE(worst_difference(buffer.value.to_host(), golden.tensor(name), relative,
                                     absolute) == "");
        }
    }
}

TEST_CASE("layers: BatchNorm2d in evaluation is PyTorch's and changes nothing") {
    Device device;
    const Golden golden = read_golden("batch_norm2d_eval.txt");
    BatchNorm2d layer("norm", device, 3);
    set_parameters(layer, golden);
    layer.set_training(false);
    layer.running_mean.copy_from(golden.tensor("running_mean").values);
    layer.running_var.copy_from(golden.tensor("running_var").values);
    REQUIRE(differences(device, layer, golden) == "");
    REQUIRE(layer.running_mean.to_host() == golden.tensor("running_mean").values);
    REQUIRE(layer.running_var.to_host() == golden.tensor("running_var").values);
}

TEST_CASE("layers: a wrong shape is refused in one sentence") {
    Device device;
    Random random(1);
    Tape tape(device);
    const Variable pictures = tape.constant(Tensor(device, {2, 3, 4, 5}));
    Linear linear("linear1", device, 7, 5, random);
    REQUIRE(message_of([&] { linear.forward(pictures); }) ==
            "linear1 takes [batch, 7], not [2, 3, 4, 5]");
    Conv2d conv("conv1", device, {1, 2, 3}, random);
    REQUIRE(message_of([&] { conv.forward(pictures); }) ==
            "conv1 takes [batch, 1, height, width], not [2, 3, 4, 5]");
    Conv2d wide("conv2", device, {3, 2, 7, 1, 1}, random);
    REQUIRE(message_of([&] { wide.forward(pictures); }) ==
            "conv2 has a window of 7 pixels, more than the picture of [2, 3, 4, 5] with its "
            "padding");
    MaxPool2d pool("pool1", 5);
    REQUIRE(message_of([&] { pool.forward(pictures); }) ==
            "pool1 takes [batch, channels, height, width] with pictures of at least 5 x 5 pixels, "
            "not [2, 3, 4, 5]");
    BatchNorm2d norm("norm1", device, 4);
    REQUIRE(message_of([&] { norm.forward(pictures); }) ==
            "norm1 takes [batch, 4, height, width], not [2, 3, 4, 5]");
    const Variable one = tape.constant(Tensor(device, {1, 4, 1, 1}));
    REQUIRE(message_of([&] { norm.forward(one); }) ==
            "norm1 cannot train on [1, 4, 1, 1]: the variance of one value a channel is not known; "
            "give it a larger batch");
    norm.set_training(false);
    REQUIRE(message_of([&] { norm.forward(one); }) == "");
}

}  // namespace ddp::test
