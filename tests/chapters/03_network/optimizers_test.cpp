// Optimizers against PyTorch, and how parameters begin.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "01_sgd/operations.hpp"
#include "03_network/cross_entropy.hpp"
#include "03_network/layers/conv2d.hpp"
#include "03_network/layers/fused_optimizers.hpp"
#include "03_network/layers/initialisers.hpp"
#include "03_network/linear.hpp"
#include "03_network/models.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/chapters/support/optimizers.hpp"
#include "tests/support/catch.hpp"

#if !defined(DDP_CUDA)
#include "cuda_on_cpu/observe.hpp"
#endif

namespace ddp::test {

TEST_CASE("optimizers: ten steps of Sgd are PyTorch's") {
    Device device;
    for (const char* file : {"sgd.txt", "sgd_momentum.txt", "sgd_momentum_decay.txt"}) {
        INFO(file);
        REQUIRE(optimizer_difference(device, file, [](Parameters all, const Golden& golden) {
                    return std::make_unique<Sgd>(all, golden.number("lr"),
                                                 golden.number("momentum"),
                                                 golden.number("weight_decay"));
                }) == "");
    }
}

TEST_CASE("optimizers: ten steps of Adam are PyTorch's") {
    Device device;
    for (const char* file : {"adam.txt", "adam_decay.txt"}) {
        INFO(file);
        const Golden golden = read_golden(file);
        REQUIRE(golden.number("beta1") == Adam::beta1);
        REQUIRE(golden.number("beta2") == Adam::beta2);
        REQUIRE(golden.number("eps") == Adam::eps);
        REQUIRE(optimizer_difference(device, file, [](Parameters all, const Golden& golden) {
                    return std::make_unique<Adam>(all, golden.number("lr"),
                                                  golden.number("weight_decay"));
                }) == "");
    }
}

// ---- One launch for all parameters

// A parameter w [1] for losses 3 w, whose gradient is 3.
std::shared_ptr<Parameter> make_single(Device& device, const std::string& name) {
    return std::make_shared<Parameter>(name, Tensor(device, {1}, std::vector<float>{1}));
}

// Three steps of 200 parameters, of 0 to 16 numbers and one of 1,000; some have no gradient in some
// of the steps. Every value, and every number that the optimizer remembers.
std::vector<std::vector<float>> values_of_many(Device& device, const MakeOptimizer& make) {
    Random random(11);
    Parameters all;
    for (int i = 0; i < 200; i++)
        all.push_back(std::make_shared<Parameter>(
            std::to_string(i), uniform(device, {i == 77 ? 1000 : i % 17}, 1.0f, random)));
    const auto optimizer = make(all, Golden());
    std::vector<std::vector<float>> values;
    for (int step = 0; step < 3; step++) {
        optimizer->zero_gradients();
        for (int i = 0; i < 200; i++)
            if ((i + step) % 5 != 0) {
                const Tensor& value = all[i]->value;
                all[i]->gradient_for_writing().copy_from(
                    uniform(device, value.shape(), 1.0f, random).to_host());
            }
        optimizer->step();
        for (const auto& parameter : all)
            values.push_back(parameter->value.to_host());
    }
    for (const auto& [name, tensor] : optimizer->state().tensors)
        values.push_back(tensor.to_host());
    for (const auto& [name, number] : optimizer->state().numbers)
        values.push_back({static_cast<float>(*number)});
    return values;
}

TEST_CASE("optimizers: one launch for all parameters gives the bits of one for each") {
    Device device;
    const auto values_by = [&]<class Chosen>() {
        return values_of_many(device, [](Parameters all, const Golden&) {
            if constexpr (std::is_base_of_v<Sgd, Chosen>)
                return std::make_unique<Chosen>(all, 0.1, 0.9, 0.01);
            else
                return std::make_unique<Chosen>(all, 0.1, 0.01);
        });
    };
    REQUIRE(values_by.operator()<FusedSgd>() == values_by.operator()<Sgd>());
    REQUIRE(values_by.operator()<FusedAdam>() == values_by.operator()<Adam>());
}

TEST_CASE("optimizers: one launch takes as many parameters as fit into its arguments") {
#if !defined(DDP_CUDA)
    Device device;
    const auto launches_of = [&](int parameters) {
        Parameters all;
        for (int i = 0; i < parameters; i++) {
            all.push_back(make_single(device, std::to_string(i)));
            all.back()->gradient_for_writing().copy_from(std::vector<float>{1});
        }
        FusedSgd momentum(all, 0.1);
        FusedAdam adam(all, 0.1);
        static std::atomic<int> launches;
        device.stream().synchronize();
        launches = 0;
        cuda_on_cpu::observe_kernels([](const cuda_on_cpu::FinishedKernel&) { launches++; });
        momentum.step();
        device.stream().synchronize();
        const int of_momentum = launches.exchange(0);
        adam.step();
        device.stream().synchronize();
        cuda_on_cpu::observe_kernels(nullptr);
        return std::pair(of_momentum, launches.load());
    };
    REQUIRE(launches_of(0) == std::pair(0, 0));
    REQUIRE(launches_of(6) == std::pair(1, 1));
    REQUIRE(launches_of(100) == std::pair(1, 2));
    REQUIRE(launches_of(121) == std::pair(2, 3));
#endif
}

TEST_CASE("optimizers: without a gradient neither value nor state moves") {
    Device device;
    const auto state_moves = [&](const MakeOptimizer& make) {
        const auto a =
            std::make_shared<Parameter>("a", Tensor(device, {2}, std::vector<float>{1, 2}));
        const auto b =
            std::make_shared<Parameter>("b", Tensor(device, {2}, std::vector<float>{1, 2}));
        const auto optimizer = make({a, b}, Golden());
        const std::vector<float> gradient{2, 6};
        for (const bool with_a : {true, false, true}) {
            optimizer->zero_gradients();
            if (with_a)
                a->gradient_for_writing().copy_from(gradient);
            optimizer->step();
            if (with_a) {
                optimizer->zero_gradients();
                b->gradient_for_writing().copy_from(gradient);
                optimizer->step();
            }
        }
        return a->value.to_host() != b->value.to_host();
    };
    REQUIRE_FALSE(
        state_moves([](Parameters all, const Golden&) { return std::make_unique<Sgd>(all, 0.1); }));
    REQUIRE_FALSE(state_moves(
        [](Parameters all, const Golden&) { return std::make_unique<Adam>(all, 0.1); }));
}

// Six steps, some of two micro-batches, of a network whose second layer not all of them use. Every
// value that the parameters have had.
std::vector<std::vector<float>> values_of_steps(const MakeOptimizer& make, bool in_one_pass) {
    Device device;
    Random random(3);
    Linear always("always", device, 5, 5, random), sometimes("sometimes", device, 5, 5, random);
    Parameters all = always.parameters();
    for (const auto& parameter : sometimes.parameters())
        all.push_back(parameter);
    const auto optimizer = make(all, Golden());
    ZeroedGradients gradients(*optimizer);
    std::vector<std::vector<float>> values;
    for (int i = 0; i < 6; i++) {
        Tape tape(device);
        Variable x =
            always.forward(tape.constant(Tensor(device, {2, 5}, std::vector<float>(10, 0.5f + i))));
        if (i % 3 != 1)
            x = sometimes.forward(x);
        for (int micro_batch = 0; micro_batch <= i % 2; micro_batch++) {
            const Variable loss = cross_entropy(x, Labels(device, {2}, std::vector<int>{1, 3}));
            if (in_one_pass)
                gradients.begin_backward(loss);
            tape.backward(loss);
        }
        if (in_one_pass)
            gradients.step_and_zero();
        else
            optimizer->step(), optimizer->zero_gradients();
        for (const auto& parameter : all) {
            values.push_back(parameter->value.to_host());
            REQUIRE_FALSE(parameter->has_gradient());
        }
    }
    return values;
}

TEST_CASE("optimizers: step and zero in one pass are the same bits as one after the other") {
    const auto are_same = [](const MakeOptimizer& make) {
        return values_of_steps(make, true) == values_of_steps(make, false);
    };
    REQUIRE(are_same(
        [](Parameters all, const Golden&) { return std::make_unique<Sgd>(all, 0.01, 0.9, 0.1); }));
    REQUIRE(are_same([](Parameters all, const Golden&) {
        return std::make_unique<FusedSgd>(all, 0.01, 0.9, 0.1);
    }));
    REQUIRE(
        are_same([](Parameters all, const Golden&) { return std::make_unique<Adam>(all, 0.01); }));
}

// Runs forward and backward of the sum of 3 w over these parameters, with the zeros of `gradients`.
void backward_of_triples(Device& device, ZeroedGradients& gradients, const Parameters& parameters) {
    Tape tape(device);
    const Variable three = tape.constant(Tensor(device, {1}, std::vector<float>{3}));
    Variable loss = multiply(three, tape.parameter(parameters[0]));
    for (std::size_t i = 1; i < parameters.size(); i++)
        loss = add(loss, multiply(three, tape.parameter(parameters[i])));
    gradients.begin_backward(loss);
    tape.backward(loss);
}

TEST_CASE("optimizers: a gradient that has moved since its zeros is overwritten") {
    Device device;
    const auto w = make_single(device, "w");
    FusedSgd optimizer({w}, 0.1);
    ZeroedGradients gradients(optimizer);
    backward_of_triples(device, gradients, {w});
    gradients.step_and_zero();
    w->place_gradient(Tensor(device, {1}, std::vector<float>{100}));  // no zeros are there
    backward_of_triples(device, gradients, {w});
    REQUIRE(w->gradient().to_host() == std::vector<float>{3});
}

TEST_CASE("optimizers: a backward pass that does not reach a parameter forgets its zeros") {
    Device device;
    const auto always = make_single(device, "always"), sometimes = make_single(device, "sometimes");
    FusedSgd optimizer({always, sometimes}, 0.1);
    ZeroedGradients gradients(optimizer);
    backward_of_triples(device, gradients, {always, sometimes});
    Tensor memory = sometimes->gradient();
    gradients.step_and_zero();
    REQUIRE(memory.to_host() == std::vector<float>{0});
    backward_of_triples(device, gradients, {always});
    memory.copy_from(std::vector<float>{100});  // as a user of the same flat buffer might
    backward_of_triples(device, gradients, {sometimes});
    REQUIRE(sometimes->gradient().to_host() == std::vector<float>{3});
    REQUIRE(always->gradient().to_host() == std::vector<float>{3});
}

// In the first step both means are those of the gradient alone: value -= lr * g / (|g| + eps).
TEST_CASE("optimizers: Adam adds the eps that it is given") {
    Device device;
    const auto moved_by = [&]<class Kind>(std::type_identity<Kind>, double eps) {
        const auto weight =
            std::make_shared<Parameter>("weight", Tensor(device, {1}, std::vector<float>{10.0f}));
        Kind optimizer({weight}, 0.5, 0.0, eps);
        weight->gradient_for_writing().copy_from(std::vector<float>{-3.0f});
        optimizer.step();
        return weight->value.to_host()[0] - 10.0f;
    };
    for (const double eps : {1e-8, 1.0, 27.0}) {
        const double right = 0.5 * 3 / (3 + eps);
        REQUIRE(moved_by(std::type_identity<Adam>(), eps) == Approx(right).epsilon(1e-5));
        REQUIRE(moved_by(std::type_identity<FusedAdam>(), eps) == Approx(right).epsilon(1e-5));
    }
}

TEST_CASE("optimizers: settings that make no sense are refused") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double wrong : {-0.1, 1.0, nan})
        REQUIRE_THAT(message_of([&] { Sgd({}, 0.1, wrong); }),
                     Catch::Matchers::EndsWith("it must be at least 0 and below 1, such as 0.9"));
    for (const double wrong : {-0.1, nan}) {
        const auto ending = Catch::Matchers::EndsWith("a positive number, such as 0.0005");
        REQUIRE_THAT(message_of([&] { Sgd({}, 0.1, 0.9, wrong); }), ending);
        REQUIRE_THAT(message_of([&] { Adam({}, 0.1, wrong); }), ending);
    }
    REQUIRE(message_of([&] { Sgd({}, nan); }) ==
            "the learning rate is nan; it must be a positive number, such as 0.01");
    REQUIRE(message_of([&] { Adam({}, 0); }) != "");
    for (const double wrong : {0.0, -1e-8, 1e-60, nan})
        REQUIRE_THAT(message_of([&] { Adam({}, 0.1, 0.0, wrong); }),
                     Catch::Matchers::EndsWith("it must be a positive number, such as 1e-8"));
}

TEST_CASE("initialisers: the bounds are PyTorch's, and layers keep them") {
    Device device;
    const Golden golden = read_golden("initialisers.txt");
    const GoldenTensor& shapes = golden.tensor("shapes");
    const GoldenTensor& bounds = golden.tensor("bounds");
    for (std::size_t i = 0; i < shapes.shape[0]; i++) {
        const float* shape = &shapes.values[4 * i];
        const int fan_in = static_cast<int>(shape[1] * shape[2] * shape[3]);
        const float bound = kaiming_uniform_bound(fan_in, std::sqrt(5.0));
        REQUIRE(bound == Approx(bounds.values[2 * i]).epsilon(1e-6));
        REQUIRE(bound == Approx(bounds.values[2 * i + 1]).epsilon(1e-6));
    }
    REQUIRE(kaiming_uniform_bound(6, 0) == 1.0f);  // for ReLU: sqrt(6 / fan_in)

    Random random(1);
    const Linear linear("linear", device, 784, 32, random);
    const Conv2d conv("conv", device, {8, 16, 5}, random);
    const auto require_filled = [](const Tensor& tensor, float bound) {
        const std::vector<float> values = tensor.to_host();
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        REQUIRE(*least >= -bound);
        REQUIRE(*most <= bound);
        REQUIRE(*most - *least > 1.6f * bound);
    };
    require_filled(linear.weight->value, 1 / std::sqrt(784.0f));
    require_filled(linear.bias->value, 1 / std::sqrt(784.0f));
    require_filled(conv.weight->value, 1 / std::sqrt(8 * 25.0f));
    require_filled(conv.bias->value, 1 / std::sqrt(8 * 25.0f));
}

TEST_CASE("initialisers: the seed alone decides the bits") {
    Device device;
    const auto numbers = [&](std::uint64_t seed) {
        Random random(seed);
        return uniform(device, {4}, 0.5f, random).to_host();
    };
    REQUIRE(numbers(7) == numbers(7));
    REQUIRE(numbers(7) != numbers(8));
    Random random(7), again(7);
    const std::vector<float> values = uniform(device, {4}, 0.5f, random).to_host();
    for (const float value : values)
        REQUIRE(value == again.uniform(-0.5f, 0.5f));
}

TEST_CASE("models: parameters have PyTorch's names, shapes and number") {
    Device device;
    Random random(1);
    const auto describe = [&](const std::string& name) {
        std::string text;
        std::size_t count = 0;
        for (const auto& parameter : make_model(name, device, random)->parameters()) {
            text += parameter->name + " " + to_string(parameter->value.shape()) + "; ";
            count += parameter->value.size();
        }
        return text + std::to_string(count);
    };
    REQUIRE(describe("mlp") ==
            "linear1.weight [1024, 784]; linear1.bias [1024]; linear2.weight [1024, 1024]; "
            "linear2.bias [1024]; linear3.weight [10, 1024]; linear3.bias [10]; 1863690");
    REQUIRE(describe("cnn") ==
            "conv1.weight [32, 1, 3, 3]; conv1.bias [32]; norm1.weight [32]; norm1.bias [32]; "
            "conv2.weight [64, 32, 3, 3]; conv2.bias [64]; norm2.weight [64]; norm2.bias [64]; "
            "linear.weight [10, 3136]; linear.bias [10]; 50378");
    REQUIRE(message_of([&] { make_model("gpt", device, random); }) ==
            "there is no model 'gpt'; there are mlp and cnn");
}

}  // namespace ddp::test
