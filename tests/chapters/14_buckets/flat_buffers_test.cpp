// Gradients that live in the buckets: they are the same memory, training computes the same bits,
// and nothing is lost when the plan changes.
#include "14_buckets/flat_buffers.hpp"

#include <algorithm>

#include "01_sgd/operations.hpp"
#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "03_network/optimizers.hpp"
#include "tests/chapters/14_buckets/test_buckets.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/common/report/thrown.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Order = std::vector<std::size_t>;

Values counted(int count, float from) {
    Values values;
    for (int i = 0; i < count; i++)
        values.push_back(from + static_cast<float>(i));
    return values;
}

void put(Values& all, std::size_t at, const Values& values) {
    std::ranges::copy(values, all.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

TEST_CASE("flat buffers: a tensor may lie in memory of another owner, and shares it") {
    Device device;
    auto memory = std::make_shared<Buffer<float>>(Values{1, 2, 3, 4, 5, 6});
    const std::weak_ptr<Buffer<float>> observer = memory;
    Tensor tensor(device, {2, 3}, std::shared_ptr<float>(memory, memory->data()));
    REQUIRE(tensor.data() == memory->data());
    REQUIRE(&tensor.device() == &device);
    memory.reset();
    Tensor row = tensor.view(3, {3});
    tensor = Tensor();
    REQUIRE(row.to_host() == Values{4, 5, 6});
    REQUIRE_FALSE(observer.expired());
    row = Tensor();
    REQUIRE(observer.expired());
}

TEST_CASE("flat buffers: every parameter that is learned, once") {
    Device device;
    const auto a = make(device, "a", 1), b = make(device, "b", 2), c = make(device, "c", 3);
    b->is_frozen = true;
    const Parameters learned = learned_parameters({c, a, b, a, c});
    REQUIRE(learned == Parameters{c, a});
    REQUIRE(gradient_sizes(learned) == GradientSizes{{"c", 3}, {"a", 1}});
}

TEST_CASE("flat buffers: gradients and buckets are the same memory, and the gaps are 0") {
    Three three;
    REQUIRE(three.buffers.plan().buckets.size() == 2);
    three.parameters[0]->gradient_for_writing().copy_from(counted(5, 100));
    three.parameters[1]->gradient_for_writing().copy_from(counted(20, 200));
    three.parameters[2]->gradient_for_writing().copy_from(counted(3, 300));
    Values expected(64, 0.0f);
    put(expected, 0, counted(3, 300));
    put(expected, 16, counted(20, 200));
    put(expected, 48, counted(5, 100));
    REQUIRE(three.all() == expected);
    REQUIRE(three.buffers.bucket(0).to_host() == Values(expected.begin(), expected.begin() + 48));
    REQUIRE(three.buffers.bucket(1).to_host() == Values(expected.begin() + 48, expected.end()));

    // In the other direction: what a collective leaves in a bucket is the gradient.
    three.buffers.bucket(0).copy_from(counted(48, 1000));
    REQUIRE(three.parameters[2]->gradient().to_host() == counted(3, 1000));
    REQUIRE(three.parameters[1]->gradient().to_host() == counted(20, 1016));
    REQUIRE(three.parameters[0]->gradient().to_host() == counted(5, 100));
    REQUIRE(three.buffers.view(1).to_host() == counted(20, 1016));
    REQUIRE(three.buffers.index_of(*three.parameters[2]) == 2);
    const auto other = make(three.device, "other", 1);
    REQUIRE(thrown<std::out_of_range>([&] { three.buffers.index_of(*other); }) ==
            "the gradient of 'other' is in no bucket");
}

TEST_CASE("flat buffers: backward writes into the buckets; a tied parameter has one place") {
    Device device;
    const auto w = make(device, "w", 1), v = make(device, "v", 1);
    w->value.copy_from(Values{3}), v->value.copy_from(Values{7});
    const Parameters parameters = learned_parameters({w, v, w});
    const auto memory = std::make_shared<Buffer<float>>(std::size_t{32});
    const BucketPlan plan = first_plan(gradient_sizes(parameters));
    REQUIRE(plan.memory_bytes() == 2 * 64);
    const FlatBuffers buffers(device, parameters, plan, {memory, memory->data()}, 32);
    Tape tape(device);
    tape.backward(multiply(multiply(tape.parameter(w), tape.parameter(v)), tape.parameter(w)));
    const Values all = buffers.bucket(0).to_host();
    REQUIRE(all[0] == 2 * 7 * 3);  // d (w v w) / d w
    REQUIRE(all[16] == 9);
    REQUIRE(w->gradient().data() == memory->data());
}

TEST_CASE("flat buffers: another plan moves what is present, and nothing else") {
    Three three;
    three.parameters[0]->gradient_for_writing().copy_from(counted(5, 100));
    three.parameters[1]->gradient_for_writing().copy_from(counted(20, 200));
    three.buffers.arrange(first_plan(gradient_sizes(three.parameters)));
    Values expected(64, 0.0f);
    put(expected, 0, counted(5, 100));
    put(expected, 16, counted(20, 200));
    REQUIRE(three.all() == expected);
    REQUIRE(three.parameters[0]->gradient().to_host() == counted(5, 100));
    REQUIRE(three.parameters[1]->gradient().to_host() == counted(20, 200));
    REQUIRE_FALSE(three.parameters[2]->has_gradient());
    three.parameters[2]->gradient_for_writing().copy_from(counted(3, 300));
    put(expected, 48, counted(3, 300));
    REQUIRE(three.all() == expected);
}

TEST_CASE("flat buffers: gradients that were there before move in") {
    Device device;
    const Parameters parameters{make(device, "a", 3), make(device, "b", 2)};
    parameters[1]->gradient_for_writing().copy_from(counted(2, 8));
    auto memory = std::make_shared<Buffer<float>>(counted(32, 500));  // with another owner
    {
        const FlatBuffers buffers(device, parameters, first_plan(gradient_sizes(parameters)),
                                  {memory, memory->data()}, 32);
        Values expected(32, 0.0f);
        put(expected, 16, counted(2, 8));
        REQUIRE(buffers.bucket(0).to_host() == expected);
    }
    memory.reset();  // the gradient shares it
    REQUIRE(parameters[1]->gradient().to_host() == counted(2, 8));
    REQUIRE_FALSE(parameters[0]->has_gradient());
}

TEST_CASE("flat buffers: an absent gradient's part is set to 0, and only that") {
    Three three;
    three.write(0, counted(64, 1));
    three.buffers.zero_absent(1);
    Values expected = counted(64, 1);
    put(expected, 16, Values(20, 0.0f));
    REQUIRE(three.all() == expected);
    REQUIRE_FALSE(three.parameters[1]->has_gradient());
}

TEST_CASE("flat buffers: too little memory and plans for others are refused") {
    Device device;
    const Parameters parameters{make(device, "a", 3), make(device, "b", 17)};
    const BucketPlan plan = first_plan(gradient_sizes(parameters));
    const auto memory = std::make_shared<Buffer<float>>(std::size_t{48});
    const auto with = [&](const BucketPlan& plan, std::size_t size) {
        return thrown<std::invalid_argument>([&] {
            FlatBuffers(device, parameters, plan, {memory, memory->data()}, size);
        });
    };
    REQUIRE(with(plan, 48) == "(nothing)");
    REQUIRE(with(plan, 47) == "the buckets need 192 bytes of memory, not 188");
    REQUIRE(with(plan, std::size_t{3} << 30) ==
            "the buckets would hold 3221225472 elements, and a tensor holds at most 2147483647: "
            "split the model");
    BucketPlan other = plan;
    other.gradients[0].elements = 4;
    REQUIRE(with(other, 48) ==
            "the bucket plan is for other gradients: make it from gradient_sizes of the same "
            "parameters");
}

// ---- Training --------------------------------------------------------------------------------

namespace {

struct Training {
    std::vector<Values> parameters;        // at the end
    std::vector<std::size_t> allocations;  // after each step
};

Tensor images_of(Device& device, int step) {
    Values pixels;
    for (std::uint32_t i = 0; i < 6 * 784; i++)
        pixels.push_back(golden_unit(static_cast<std::uint32_t>(100 + step), i));
    return Tensor(device, {6, 1, 28, 28}, pixels);
}

// Twenty steps, each of two backward passes; with views, which are placed anew in the middle of the
// second step.
Training train(const std::string& name, bool with_views) {
    Device device;
    Random random(3);
    const auto model =
        name == "mlp" ? make_mlp(device, random, {784, 33, 21, 10}) : make_cnn(device, random);
    const Parameters parameters = learned_parameters(model->parameters());
    const GradientSizes sizes = gradient_sizes(parameters);
    const BucketPlan plan = first_plan(sizes);
    const auto memory = std::make_shared<Buffer<float>>(plan.memory_bytes() / sizeof(float));
    std::optional<FlatBuffers> buffers;
    if (with_views)
        buffers.emplace(device, parameters, plan, std::shared_ptr<float>(memory, memory->data()),
                        memory->size());
    Sgd optimizer(parameters, 0.05);
    const Labels labels(device, {6}, std::vector<int>{3, 1, 4, 1, 5, 9});
    Training result;
    for (int pass = 0; pass < 40; pass++) {
        Tape tape(device);
        Order order;
        tape.backward(cross_entropy(model->forward(tape.constant(images_of(device, pass))), labels),
                      [&](Parameter& ready) {
                          if (with_views)
                              order.push_back(buffers->index_of(ready));
                      });
        if (with_views && pass == 2)
            buffers->arrange(rebuilt_plan(sizes, {2000}, order));
        if (pass % 2 == 1) {
            optimizer.step();
            optimizer.zero_gradients();
            result.allocations.push_back(device.memory().allocations);
        }
    }
    if (with_views)
        REQUIRE(buffers->plan().buckets.size() > 1);
    for (const auto& parameter : parameters)
        result.parameters.push_back(parameter->value.to_host());
    return result;
}

}  // namespace

TEST_CASE("flat buffers: twenty steps with views give the same bits as without") {
    for (const char* name : {"mlp", "cnn"}) {
        INFO(name);
        const Training with = train(name, true), without = train(name, false);
        REQUIRE(with.parameters == without.parameters);
        REQUIRE(with.parameters.back() != Values(with.parameters.back().size(), 0.0f));
        REQUIRE(with.allocations.back() == with.allocations[2]);
    }
}

TEST_CASE("flat buffers: layers are ready in PyTorch's order") {
    for (const std::string name : {"mlp", "cnn"}) {
        INFO(name);
        Device device;
        Random random(1);
        const auto model = make_model(name, device, random);
        const Parameters parameters = learned_parameters(model->parameters());
        Order order;
        Tape tape(device);
        tape.backward(cross_entropy(model->forward(tape.constant(images_of(device, 0))),
                                    Labels(device, {6}, std::vector<int>(6, 0))),
                      [&](Parameter& ready) {
                          const auto here = std::ranges::find(
                              parameters, &ready, [](const auto& one) { return one.get(); });
                          order.push_back(static_cast<std::size_t>(here - parameters.begin()));
                      });
        const Golden golden = read_golden("ddp_" + name + ".txt");
        const Values& elements = golden.tensor("elements").values;
        REQUIRE(elements.size() == parameters.size());
        for (std::size_t i = 0; i < elements.size(); i++)
            REQUIRE(elements[i] == static_cast<float>(parameters[i]->value.size()));
        const Values& expected = golden.tensor("ready_order").values;
        REQUIRE(order == Order(expected.begin(), expected.end()));
    }
}

TEST_CASE("flat buffers: the device keeps no second set of gradients") {
    Device device;
    const Parameters parameters{make(device, "a", 100'000), make(device, "b", 50'000)};
    const std::size_t values = device.memory().live_bytes;
    const BucketPlan plan = first_plan(gradient_sizes(parameters));
    const auto memory = std::make_shared<Buffer<float>>(plan.memory_bytes() / sizeof(float));
    const FlatBuffers buffers(device, parameters, plan, {memory, memory->data()}, memory->size());
    const PlainSgd optimizer(parameters, 0.1);
    REQUIRE(device.memory().live_bytes == values);
    REQUIRE(device.memory().reserved_bytes == values);
}

}  // namespace ddp::test
