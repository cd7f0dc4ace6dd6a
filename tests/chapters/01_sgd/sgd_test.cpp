// Plain SGD against PyTorch, and what every optimizer refuses and leaves alone.
#include "01_sgd/sgd.hpp"

#include <limits>

#include "tests/chapters/support/gradients.hpp"
#include "tests/chapters/support/optimizers.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("sgd: ten steps are PyTorch's") {
    Device device;
    REQUIRE(optimizer_difference(device, "sgd.txt", [](Parameters all, const Golden& golden) {
                return std::make_unique<PlainSgd>(all, golden.number("lr"));
            }) == "");
}

TEST_CASE("sgd: a parameter without a gradient is left alone") {
    Device device;
    const auto a = std::make_shared<Parameter>("a", Tensor(device, {2}, std::vector<float>{1, 2}));
    const auto b = std::make_shared<Parameter>("b", Tensor(device, {2}, std::vector<float>{3, 4}));
    PlainSgd optimizer({a, b}, 0.5);
    b->gradient_for_writing().copy_from(std::vector<float>{2, 6});
    optimizer.step();
    REQUIRE(a->value.to_host() == std::vector<float>{1, 2});
    REQUIRE(b->value.to_host() == std::vector<float>{2, 1});
    optimizer.zero_gradients();
    REQUIRE_FALSE(b->has_gradient());
    optimizer.step();
    REQUIRE(b->value.to_host() == std::vector<float>{2, 1});
}

TEST_CASE("sgd: a parameter that is listed twice is refused") {
    Device device;
    const auto a = std::make_shared<Parameter>("a", Tensor(device, {1}, std::vector<float>{1}));
    const auto b = std::make_shared<Parameter>("b", Tensor(device, {1}, std::vector<float>{1}));
    REQUIRE(message_of([&] {
                PlainSgd({a, b, a}, 0.5);
            }) == "the parameter 'a' is listed twice, and would move twice: list it once");
}

TEST_CASE("sgd: a learning rate that is none is refused") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double wrong : {0.0, -0.1, nan, infinity})
        REQUIRE_THAT(message_of([&] { PlainSgd({}, wrong); }),
                     Catch::Matchers::EndsWith("it must be a positive number, such as 0.01"));
    REQUIRE(message_of([&] { PlainSgd({}, nan); }) ==
            "the learning rate is nan; it must be a positive number, such as 0.01");
}

}  // namespace ddp::test
