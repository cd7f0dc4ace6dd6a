// The memory of a micro-batch of n pictures on the tape of the PictureModel, in floats:
//
//                                                  forward keeps     gradients in backward
//     pictures    constant          [n, 784]       784 n
//     product     first [784, 128]  [n, 128]       128 n             128 n   <- both exist while
//     squares                       [n, 128]       128 n             128 n   <- the square runs
//     outputs     second [128, 10]  [n, 10]         10 n              10 n
//     classes     constant          [n, 10]         10 n
//     difference                    [n, 10]         10 n              10 n
//     squares                       [n, 10]         10 n              10 n
//     mean                          [1]              1                 1
//
// Forward keeps everything that is on the tape. Backward drops each gradient as soon as it has been
// used, so at most two are there at a time. activation_bytes() adds up these numbers.
#include "04_gradient_accumulation/batch_models.hpp"

#include <cmath>

#include "01_sgd/operations.hpp"
#include "04_gradient_accumulation/batch_operations.hpp"
#include "common/data/fashion_mnist.hpp"

namespace ddp {
namespace {

// Returns weights [inputs, outputs], uniform within +-1 / sqrt(inputs).
std::shared_ptr<Parameter> random_weights(const std::string& name, Device& device, int inputs,
                                          int outputs, Random& random) {
    const float bound = 1.0f / std::sqrt(static_cast<float>(inputs));
    std::vector<float> values(static_cast<std::size_t>(inputs) * outputs);
    for (float& value : values)
        value = random.uniform(-bound, bound);
    return std::make_shared<Parameter>(name, Tensor(device, {inputs, outputs}, values));
}

}  // namespace

HouseBatchModel::HouseBatchModel(Device& device, const std::vector<House>& houses)
    : weights(std::make_shared<Parameter>("weights",
                                          Tensor(device, {3, 1}, std::vector<float>{0, 0, 0}))) {
    const int count = static_cast<int>(houses.size());
    // A house is (bedrooms, bathrooms, 1): the 1 is multiplied by b.
    std::vector<float> inputs, prices;
    for (const House& house : houses) {
        inputs.insert(inputs.end(), {house.bedrooms, house.bathrooms, 1.0f});
        prices.push_back(house.price);
    }
    inputs_ = Tensor(device, {count, 3}, inputs);
    prices_ = Tensor(device, {count, 1}, prices);
}

Variable HouseBatchModel::loss(Tape& tape, Samples samples) const {
    const auto first = static_cast<std::size_t>(samples.first);
    // Views of the rows of these samples. Nothing is copied.
    const Variable x = tape.constant(inputs_.view(3 * first, {samples.count, 3}), "x");
    const Variable y = tape.constant(prices_.view(first, {samples.count, 1}), "y");
    return mean(square(subtract(matrix_product(x, tape.parameter(weights)), y)));
}

PictureModel::PictureModel(Device& device, const LabelledImages& images, int hidden, Random& random)
    : first(random_weights("first", device, static_cast<int>(images.image_size()), hidden, random)),
      second(random_weights("second", device, hidden, images.classes, random)),
      device_(device),
      images_(images) {}

Variable PictureModel::loss(Tape& tape, Samples samples) const {
    const int pixels = first->value.dim(0), class_count = images_.classes;
    const std::size_t begin = static_cast<std::size_t>(samples.first) * pixels;
    // Inputs: the pixels, shifted and scaled to mean 0 and variance 1 over the data set.
    std::vector<float> pictures(static_cast<std::size_t>(samples.count) * pixels);
    normalise(std::span(images_.pixels).subspan(begin, pictures.size()),
              fashion_mnist_normalisation, pictures);
    // Targets: 1 for the right class, 0 for the others.
    std::vector<float> classes(static_cast<std::size_t>(samples.count) * class_count);
    for (int i = 0; i < samples.count; i++)
        classes[static_cast<std::size_t>(i) * class_count + images_.labels[samples.first + i]] =
            1.0f;
    // Both are copied for this micro-batch only: the tape is their only owner.
    const Variable x =
        tape.constant(Tensor(device_, {samples.count, pixels}, pictures), "pictures");
    const Variable y =
        tape.constant(Tensor(device_, {samples.count, class_count}, classes), "classes");
    const Variable hidden = square(matrix_product(x, tape.parameter(first)));
    return mean(square(subtract(matrix_product(hidden, tape.parameter(second)), y)));
}

std::size_t PictureModel::activation_bytes(int pictures) const {
    const int pixels = first->value.dim(0), hidden = first->value.dim(1);
    // Forward: the pictures; the hidden layer and its squares; the outputs, the classes, their
    // difference and its squares.
    const int kept = pixels + 2 * hidden + 4 * images_.classes;
    // Backward: the most floats are in use at the square of the hidden layer, whose input and
    // output are the widest.
    const int gradients = 2 * hidden;
    return (static_cast<std::size_t>(pictures) * (kept + gradients) + 1) *
           sizeof(float);  // 1: loss
}

}  // namespace ddp
