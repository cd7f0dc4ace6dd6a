// Every layer against PyTorch: forward, and backward from a given gradient of the output.
#include <memory>
#include <string>

#include "03_network/layers/batch_norm2d.hpp"
#include "03_network/layers/conv2d.hpp"
#include "03_network/layers/flatten.hpp"
#include "03_network/layers/max_pool2d.hpp"
#include "03_network/layers/relu.hpp"
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
            found += name + " has the shape " + text_of(tensor.shape()) + "; ";
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
