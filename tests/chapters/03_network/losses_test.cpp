// The losses against PyTorch and finite differences.
#include <cmath>
#include <limits>

#include "03_network/cross_entropy.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Loss = std::function<Variable(Variable, const Golden&)>;

void require_golden(Device& device, const std::string& file, const Loss& loss_of) {
    INFO(file);
    const Golden golden = read_golden(file);
    const auto x = std::make_shared<Parameter>("input", tensor_of(device, golden.tensor("input")));
    Tape tape(device);
    const Variable loss = loss_of(tape.parameter(x), golden);
    REQUIRE(loss.value().to_host()[0] == Approx(golden.number("loss")).epsilon(1e-5));
    tape.backward(loss);
    REQUIRE(worst_difference(x->gradient().to_host(), golden.tensor("input_gradient"), 1e-5,
                             1e-7) == "");
}

Labels labels_of(Device& device, const std::vector<int>& labels) {
    return Labels(device, {static_cast<int>(labels.size())}, labels);
}

}  // namespace

TEST_CASE("losses: cross_entropy is PyTorch's, with huge logits too") {
    Device device;
    for (const char* file : {"cross_entropy.txt", "cross_entropy_large.txt"})
        require_golden(device, file, [&](Variable x, const Golden& golden) {
            const std::vector<float>& target = golden.tensor("target").values;
            return cross_entropy(x,
                                 labels_of(device, std::vector<int>(target.begin(), target.end())));
        });
}

TEST_CASE("losses: backward agrees with finite differences, and adds up") {
    Device device;
    const auto x =
        std::make_shared<Parameter>("input", Tensor(device, {5, 3}, distinct_values(15, 2.0f)));
    const Labels labels = labels_of(device, {2, 0, 1, 1, 2});
    const auto loss = [&](Tape& tape) { return cross_entropy(tape.parameter(x), labels); };
    REQUIRE(message_of([&] { require_gradients(device, {x}, loss); }) == "");
    Tape tape(device);
    x->clear_gradient();
    tape.backward(loss(tape));
    const std::vector<float> once = x->gradient().to_host();
    tape.clear();
    tape.backward(loss(tape), {}, 2.0f);  // on top of the first
    const std::vector<float> thrice = x->gradient().to_host();
    for (std::size_t i = 0; i < once.size(); i++)
        REQUIRE(thrice[i] == Approx(3.0f * once[i]));
}

TEST_CASE("losses: cross_entropy shows what is wrong") {
    Device device;
    Tape tape(device);
    const Variable x = tape.constant(Tensor(device, {3, 4}, distinct_values(12, 1.0f)));
    for (const int wrong : {-1, 4})
        REQUIRE(
            std::isnan(cross_entropy(x, labels_of(device, {0, wrong, 1})).value().to_host()[0]));
    REQUIRE(message_of([&] {
                cross_entropy(x, labels_of(device, {0, 1}));
            }) ==
            "cross_entropy takes logits [batch, classes] and as many labels, not [3, 4] and [2]");
    std::vector<float> values = distinct_values(12, 1.0f);
    values[7] = std::numeric_limits<float>::quiet_NaN();
    const Variable bad = tape.constant(Tensor(device, {3, 4}, values));
    REQUIRE(std::isnan(cross_entropy(bad, labels_of(device, {0, 2, 1})).value().to_host()[0]));
}

}  // namespace ddp::test
