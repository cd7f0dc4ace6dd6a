// concat, slice and mean, along each dimension of tensors whose sizes are all different: forward by
// indices that are counted out here, backward by finite differences.
#include "03_network/layers/dimensions.hpp"

#include "01_sgd/operations.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Element [a, b, c] of a tensor [.., sizes[1], sizes[2]].
std::size_t place(const Shape& sizes, int a, int b, int c) {
    return (static_cast<std::size_t>(a) * sizes[1] + b) * sizes[2] + c;
}

// Calls `visit` with each index of a tensor of three dimensions.
void for_each_index(const Shape& sizes, const std::function<void(std::vector<int>)>& visit) {
    for (int a = 0; a < sizes[0]; a++)
        for (int b = 0; b < sizes[1]; b++)
            for (int c = 0; c < sizes[2]; c++)
                visit({a, b, c});
}

float at(const std::vector<float>& values, const Shape& sizes, const std::vector<int>& index) {
    return values.at(place(sizes, index[0], index[1], index[2]));
}

const Shape whole{3, 5, 7};

std::shared_ptr<Parameter> parameter(Device& device, const std::string& name, const Shape& shape,
                                     float range) {
    return std::make_shared<Parameter>(
        name, Tensor(device, shape, distinct_values(element_count(shape), range)));
}

}  // namespace

TEST_CASE("dimensions: a slice has the places that it was asked for") {
    Device device;
    Tape tape(device);
    const std::vector<float> values = distinct_values(element_count(whole), 1.0f);
    const Variable x = tape.constant(Tensor(device, whole, values));
    for (std::size_t dimension = 0; dimension < 3; dimension++)
        for (const auto& [first, length] : {std::pair{0, 1}, {1, 2}, {0, whole[dimension]}}) {
            const Tensor part = slice(x, dimension, first, length).value();
            Shape sizes = whole;
            sizes[dimension] = length;
            REQUIRE(part.shape() == sizes);
            const std::vector<float> found = part.to_host();
            for_each_index(sizes, [&, first = first](std::vector<int> index) {
                const float value = at(found, sizes, index);
                index[dimension] += first;
                REQUIRE(value == at(values, whole, index));
            });
        }
}

TEST_CASE("dimensions: concat puts its inputs one behind the other") {
    Device device;
    Tape tape(device);
    for (std::size_t dimension = 0; dimension < 3; dimension++) {
        Shape first = whole, second = whole, both = whole;
        second[dimension] = 2;
        both[dimension] += 2;
        const std::vector<float> a = distinct_values(element_count(first), 1.0f);
        const std::vector<float> b = distinct_values(element_count(second), 30.0f);
        const Tensor y = concat({tape.constant(Tensor(device, first, a)),
                                 tape.constant(Tensor(device, second, b))},
                                dimension)
                             .value();
        REQUIRE(y.shape() == both);
        const std::vector<float> found = y.to_host();
        for_each_index(both, [&](std::vector<int> index) {
            const float value = at(found, both, index);
            const bool is_first = index[dimension] < whole[dimension];
            if (!is_first)
                index[dimension] -= whole[dimension];
            REQUIRE(value == (is_first ? at(a, first, index) : at(b, second, index)));
        });
    }
}

TEST_CASE("dimensions: the mean is over one dimension, which goes") {
    Device device;
    Tape tape(device);
    const std::vector<float> values = distinct_values(element_count(whole), 1.0f);
    for (std::size_t dimension = 0; dimension < 3; dimension++) {
        const Tensor y = mean(tape.constant(Tensor(device, whole, values)), dimension).value();
        Shape kept = whole, sizes = whole;
        kept[dimension] = 1;
        sizes.erase(sizes.begin() + static_cast<int>(dimension));
        REQUIRE(y.shape() == sizes);
        const std::vector<float> found = y.to_host();
        for_each_index(kept, [&](std::vector<int> index) {
            const float value = at(found, kept, index);
            double sum = 0;
            for (index[dimension] = 0; index[dimension] < whole[dimension]; index[dimension]++)
                sum += at(values, whole, index);
            REQUIRE(value == Approx(sum / whole[dimension]).margin(1e-6));
        });
    }
    const Tensor one = mean(tape.constant(Tensor(device, {4}, std::vector{1.f, 2.f, 3.f, 6.f})), 0)
                           .value();  // the mean of all there is: one number, as losses are
    REQUIRE(one.to_host() == std::vector{3.0f});
    REQUIRE(mean(tape.constant(Tensor(device, {0, 4})), 1).value().shape() == Shape{0});
}

// Some use their input twice, so that one of the two contributions is added to the other.
TEST_CASE("dimensions: backward agrees with finite differences") {
    Device device;
    const auto x = parameter(device, "x", whole, 2.0f);
    for (std::size_t dimension = 0; dimension < 3; dimension++) {
        Shape shape = whole;
        shape[dimension] = 2;
        const auto y = parameter(device, "y", shape, 3.0f);
        INFO("dimension " << dimension);
        const auto check = [&](const Parameters& all,
                               const std::function<Variable(Variable, Variable)>& work) {
            for (const auto& one : {x, y})
                one->clear_gradient();
            REQUIRE(message_of([&] {
                        require_gradients(device, all, [&](Tape& tape) {
                            return work(tape.parameter(x), tape.parameter(y));
                        });
                    }) == "");
        };
        check({x}, [&](Variable a, Variable) { return slice(a, dimension, 1, 2); });
        check({x}, [&](Variable a, Variable) {
            return multiply(slice(a, dimension, 0, 2), slice(a, dimension, 1, 2));
        });
        check({x}, [&](Variable a, Variable) { return mean(a, dimension); });
        check({x}, [&](Variable a, Variable) {
            return multiply(mean(a, dimension), mean(a, dimension));
        });
        check({x, y}, [&](Variable a, Variable b) {
            return concat({b, square(a), b, a}, dimension);
        });
    }
}

TEST_CASE("dimensions: nothing is computed for an input that needs no gradient") {
    Device device;
    Tape tape(device);
    const auto x = parameter(device, "x", whole, 2.0f), frozen = parameter(device, "f", whole, 1);
    frozen->is_frozen = true;
    const Variable y = concat({tape.parameter(frozen), tape.parameter(x)}, 1);
    tape.backward(weighted_sum(y, random_weights(y.value().size())));
    REQUIRE(x->has_gradient());
    REQUIRE_FALSE(frozen->has_gradient());
}

TEST_CASE("dimensions: what does not fit is refused") {
    Device device;
    Tape tape(device);
    const Variable x = tape.constant(Tensor(device, {2, 3}));
    const Variable y = tape.constant(Tensor(device, {2, 4}));
    REQUIRE(message_of([&] { mean(x, 2); }) ==
            "mean needs a tensor with a dimension 2, counted from 0, and [2, 3] has none");
    REQUIRE(message_of([&] {
                mean(tape.constant(Tensor(device, {2, 0})), 1);
            }) == "mean needs at least one number, and dimension 1 of [2, 0] has none");
    REQUIRE(message_of([&] { concat({}, 0); }) == "concat needs at least one tensor");
    REQUIRE(message_of([&] {
                concat({x, y}, 0);
            }) == "concat needs tensors that differ only in dimension 0, not [2, 3] and [2, 4]");
    REQUIRE(message_of([&] {
                concat({x, tape.constant(Tensor(device, {2}))}, 1);
            }) == "concat needs a tensor with a dimension 1, counted from 0, and [2] has none");
    for (const auto& [first, length] : {std::pair{-1, 2}, {0, 0}, {2, 2}, {0, 4}})
        REQUIRE_THAT(
            message_of([&, first = first, length = length] { slice(x, 1, first, length); }),
            Catch::Matchers::StartsWith("slice cannot take " + std::to_string(length) +
                                        " places from place " + std::to_string(first)));
}

}  // namespace ddp::test
