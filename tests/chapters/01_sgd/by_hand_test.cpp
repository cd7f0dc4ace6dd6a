// The descent by hand: the host's, the kernels' and the tape's are one.
#include "01_sgd/by_hand.hpp"

#include <array>

#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {

static std::array<float, 3> numbers_of(const LinearModel& model) {
    return {model.w1, model.w2, model.b};
}

// A GPU multiplies and adds with one rounding, where a host has two.
static bool is_same(float a, float b) {
    return kernels_run_on_cpu ? a == b : a == Approx(b).epsilon(1e-4);
}

static std::array<float, 3> through_the_tape(Device& device, const HouseData& data, int epochs,
                                             double learning_rate) {
    HouseModel model(device);
    PlainSgd optimizer(model.parameters(), learning_rate);
    Tape tape(device);
    for (int epoch = 0; epoch < epochs; epoch++)
        for (int i = 0; i < data.count; i++) {
            tape.clear();
            tape.backward(model.loss(tape, data, i));
            optimizer.step();
            optimizer.zero_gradients();
        }
    return {model.w1->value.to_host()[0], model.w2->value.to_host()[0],
            model.b->value.to_host()[0]};
}

TEST_CASE("by hand: the first two steps of the book's houses") {
    const std::vector<House> houses = make_houses(2, 1);
    REQUIRE(descend_on_host({houses[0]}, 1, 1e-3f).w1 == Approx(0.18));
    const LinearModel model = descend_on_host(houses, 1, 1e-3f);
    REQUIRE(model.w1 == Approx(0.2895));
    REQUIRE(model.w2 == Approx(0.1038));
    REQUIRE(model.b == Approx(0.0519));
}

TEST_CASE("by hand: host, launches and tape agree") {
    Device device;
    for (const int count : {1, 2, 7}) {
        const std::vector<House> houses = make_houses(static_cast<std::size_t>(count), 5);
        const HouseData data(device, houses);
        for (const int epochs : {1, 3}) {
            CAPTURE(count, epochs);
            const auto host = numbers_of(descend_on_host(houses, epochs, 2e-3f));
            const auto kernels = numbers_of(descend_by_launches(device, data, epochs, 2e-3f));
            const auto tape = through_the_tape(device, data, epochs, 2e-3f);
            for (std::size_t i = 0; i < 3; i++) {
                REQUIRE(is_same(kernels[i], host[i]));
                REQUIRE(is_same(tape[i], host[i]));
            }
        }
    }
}

static EarlyRead read_of_a_long_descent(Device& device) {
    const HouseData data(device, make_houses(20, 5));
    return read_too_early(device, data, 5000, 1e-3f);
}

TEST_CASE("by hand: what is read too early is not there, and is after waiting") {
    Device device;
    const float right = descend_on_host(make_houses(20, 5), 5000, 1e-3f).w1;
    bool was_too_early = false;
    // Where others keep the host from running, it may be late enough for once.
    for (int i = 0; i < 20 && !was_too_early; i++) {
        const EarlyRead read = read_of_a_long_descent(device);
        REQUIRE(is_same(read.after_waiting, right));
        REQUIRE(read.done_s >= read.enqueued_s);
        was_too_early = read.too_early == 0;
    }
    REQUIRE(was_too_early);
}

TEST_CASE("by hand where a page is guarded", "[.child]") {
    Device device;
    read_of_a_long_descent(device);
}

TEST_CASE("by hand: strict mode names the copy whose result is read too early") {
    if (!kernels_run_on_cpu)
        return;
    const ChildResult child = run_child("by hand where a page is guarded", {"CUDA_ON_CPU=strict"});
    REQUIRE((child.signal != 0 || child.exit_code != 0));
    REQUIRE_THAT(child.output, ContainsSubstring("01_sgd/by_hand.cu"));
    REQUIRE_THAT(child.output, ContainsSubstring("before it synchronised with the stream"));
}

}  // namespace ddp::test
