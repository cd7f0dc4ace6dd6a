// Whole training: PyTorch's curves, the same bits from the same seed, and no memory that grows.
#include <algorithm>

#include "03_network/cross_entropy.hpp"
#include "03_network/layers/batch_norm2d.hpp"
#include "03_network/layers/conv2d.hpp"
#include "03_network/layers/small_training.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "03_network/loader.hpp"
#include "03_network/models.hpp"
#include "tests/chapters/support/golden_training.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

std::unique_ptr<Sequential> make_small_cnn(Device& device, Random& random) {
    auto cnn = std::make_unique<Sequential>("cnn");
    cnn->add<Conv2d>("conv1", device, Conv2dShape{1, 8, 3, 1, 1}, random);
    cnn->add<BatchNorm2d>("norm1", device, 8);
    cnn->add<Relu>("relu1");
    cnn->add<MaxPool2d>("pool1", 2);
    cnn->add<Conv2d>("conv2", device, Conv2dShape{8, 16, 3}, random);
    cnn->add<Relu>("relu2");
    cnn->add<MaxPool2d>("pool2", 2);
    cnn->add<Flatten>("flatten");
    cnn->add<Linear>("linear", device, 64, 10, random);
    return cnn;
}

Shape picture_of(const Golden& golden) {
    const std::vector<float>& shape = golden.tensor("image").values;
    return {shape.begin(), shape.end()};
}

void require_curve(Device& device, Sequential& model, const std::string& file,
                   double loss_tolerance, double final_tolerance) {
    const Golden golden = read_golden(file);
    set_golden_weights(model);
    for (const auto& parameter : model.parameters())
        REQUIRE(sums_difference("initial." + parameter->name, parameter->value, golden, 1e-6) ==
                "");
    Sgd optimizer(model.parameters(), 0.05, 0.9);
    Tape tape(device);
    const std::vector<float>& losses = golden.tensor("loss").values;
    for (int step = 0; step < static_cast<int>(losses.size()); step++) {
        const int size = static_cast<int>(golden.number("batch"));
        const Batch batch =
            golden_samples(device, part_of(step * size, (step + 1) * size), picture_of(golden));
        tape.clear();
        const Variable loss =
            cross_entropy(model.forward(tape.constant(batch.images)), batch.labels);
        tape.backward(loss);
        if (step == 0)
            for (const auto& parameter : model.parameters())
                REQUIRE(sums_difference("first_gradient." + parameter->name, parameter->gradient(),
                                        golden, 1e-5) == "");
        optimizer.step();
        optimizer.zero_gradients();
        INFO("step " << step);
        REQUIRE(loss.value().to_host()[0] ==
                Approx(losses[static_cast<std::size_t>(step)]).epsilon(loss_tolerance));
    }
    for (const auto& parameter : model.parameters())
        REQUIRE(sums_difference("final." + parameter->name, parameter->value, golden,
                                final_tolerance) == "");
    for (const NamedTensor& buffer : model.buffers())
        REQUIRE(sums_difference("final." + buffer.name, buffer.value, golden, final_tolerance) ==
                "");
}

LabelledImages noise_images(int count) {
    LabelledImages images{1, 28, 28, {}, {}};
    Random random(3);
    for (int n = 0; n < count; n++) {
        for (int p = 0; p < 784; p++)
            images.pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
        images.labels.push_back(static_cast<std::uint8_t>(random.below(10)));
    }
    return images;
}

struct Run {
    std::vector<std::vector<float>> parameters;  // at the end
    std::vector<std::size_t> live, allocations;  // after each step
};

// Who takes the four phases of a step: this file, or one of SmallTraining's two.
enum class Steps { by_hand, by_loss, by_gradients };

// `epochs` of 40 samples in batches of 12, so that each epoch ends with a batch of 4.
Run train(const std::string& name, std::uint64_t seed, bool with_adam, int epochs,
          Steps steps = Steps::by_hand) {
    Device device;
    Random random(seed);
    const LabelledImages images = noise_images(40);
    Loader loader(device, images, {0.5f, 0.5f}, 12);
    const auto model =
        name == "mlp" ? make_mlp(device, random, {784, 33, 10}) : make_cnn(device, random);
    std::unique_ptr<Optimizer> optimizer;
    if (with_adam)
        optimizer = std::make_unique<Adam>(model->parameters());
    else
        optimizer = std::make_unique<FusedSgd>(model->parameters(), 0.05);
    Run run;
    Tape tape(device);
    SmallTraining small(device, *optimizer);
    for (int epoch = 0; epoch < epochs; epoch++) {
        loader.start_epoch(shuffled(loader.samples(), seed, epoch));
        while (const auto batch = loader.next()) {
            const auto loss_of = [&](Tape& on) {
                return cross_entropy(model->forward(on.constant(batch->images)), batch->labels);
            };
            if (steps == Steps::by_loss) {
                small.step(loss_of);
            } else if (steps == Steps::by_gradients) {
                small.step([&] { tape.backward(loss_of(tape)); });
            } else {
                tape.backward(loss_of(tape));
                optimizer->step();
                optimizer->zero_gradients();
            }
            tape.clear();
            run.live.push_back(device.memory().live_bytes);
            run.allocations.push_back(device.memory().allocations);
        }
    }
    for (const auto& parameter : model->parameters())
        run.parameters.push_back(parameter->value.to_host());
    return run;
}

}  // namespace

TEST_CASE("training: fifty steps of an MLP follow PyTorch's curve") {
    Device device;
    Random random(1);
    require_curve(device, *make_mlp(device, random, {784, 32, 16, 10}), "train_mlp.txt", 1e-5,
                  1e-5);
}

TEST_CASE("training: fifty steps of a CNN follow PyTorch's curve") {
    Device device;
    Random random(1);
    require_curve(device, *make_small_cnn(device, random), "train_cnn.txt", 1e-5, 1e-4);
}

TEST_CASE("training: the same seed gives the same bits, another seed others") {
    for (const char* model : {"mlp", "cnn"})
        for (const bool with_adam : {false, true}) {
            const Run run = train(model, 7, with_adam, 2);
            REQUIRE(run.parameters == train(model, 7, with_adam, 2).parameters);
            REQUIRE(run.parameters != train(model, 8, with_adam, 2).parameters);
        }
}

TEST_CASE("training: small steps give the bits of a loop that has all four phases") {
    for (const bool with_adam : {false, true}) {
        const Run right = train("mlp", 7, with_adam, 2);
        for (const Steps steps : {Steps::by_loss, Steps::by_gradients})
            REQUIRE(train("mlp", 7, with_adam, 2, steps).parameters == right.parameters);
    }
}

TEST_CASE("training: a small step that fails leaves nothing for the next one") {
    Device device;
    const auto w =
        std::make_shared<Parameter>("w", Tensor(device, {1, 2}, std::vector<float>{1, 3}));
    PlainSgd optimizer({w}, 0.5);
    SmallTraining small(device, optimizer);
    const auto loss_of = [&](Tape& tape) {
        REQUIRE(tape.nodes().empty());
        return cross_entropy(tape.parameter(w), Labels(device, {1}, std::vector<int>{0}));
    };
    const auto fails = [](Variable) { throw std::runtime_error("no gradient"); };
    REQUIRE_THROWS_WITH(small.step(loss_of, fails), "no gradient");
    REQUIRE(w->value.to_host() == std::vector<float>{1, 3});
    const float loss = small.step(loss_of).to_host()[0];
    REQUIRE(loss == Approx(2.126928).epsilon(1e-5));
    REQUIRE(w->value.to_host()[0] > 1);
    REQUIRE(!w->has_gradient());
}

TEST_CASE("training: memory does not grow, and a step like one before allocates nothing") {
    for (const char* model : {"mlp", "cnn"}) {
        INFO(model);
        const Run run = train(model, 7, false, 4);
        REQUIRE(run.live.size() == 16);
        // An epoch is 12, 12, 12 and 4 samples; the first step of each size may allocate.
        for (std::size_t step = 1; step < run.live.size(); step++) {
            INFO("step " << step);
            if (step != 3)
                REQUIRE(run.allocations[step] == run.allocations[step - 1]);
            REQUIRE(run.live[step] == run.live[step % 4]);
        }
    }
}

TEST_CASE("training: evaluation leaves the model as it is") {
    Device device;
    Random random(1);
    const auto cnn = make_cnn(device, random);
    const LabelledImages images = noise_images(10);
    const auto logits = [&](int batch) {
        Loader loader(device, images, {}, batch);
        loader.start_epoch(in_order(10));
        std::vector<float> all;
        Tape tape(device);
        while (const auto one = loader.next()) {
            const std::vector<float> some =
                cnn->forward(tape.constant(one->images)).value().to_host();
            all.insert(all.end(), some.begin(), some.end());
            tape.clear();
        }
        return all;
    };
    logits(10);  // moves the running averages away from 0 and 1
    cnn->set_training(false);
    std::vector<std::vector<float>> before;
    for (const NamedTensor& buffer : cnn->buffers())
        before.push_back(buffer.value.to_host());
    const std::vector<float> together = logits(10);
    const std::vector<float> apart = logits(3);  // what else is in the batch does not matter
    for (std::size_t i = 0; i < together.size(); i++)
        REQUIRE(together[i] == Approx(apart[i]).margin(1e-5));
    for (std::size_t i = 0; i < before.size(); i++)
        REQUIRE(cnn->buffers()[i].value.to_host() == before[i]);
}

}  // namespace ddp::test
