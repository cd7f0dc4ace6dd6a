#pragma once
// The chapter's two models. Both compute the mean loss of any samples at once.
#include "01_sgd/sgd.hpp"
#include "04_gradient_accumulation/accumulate.hpp"
#include "common/data/houses.hpp"
#include "common/data/images.hpp"
#include "common/data/random.hpp"

namespace ddp {

// price = bedrooms * w1 + bathrooms * w2 + b as in chapter 01, for many houses at a time:
// [n, 3] times [3, 1], where a house is (bedrooms, bathrooms, 1).
class HouseBatchModel {
  public:
    // w1, w2 and b start at 0. The houses are copied to the device.
    HouseBatchModel(Device& device, const std::vector<House>& houses);

    Variable loss(Tape& tape, Samples samples) const;  // mean squared error

    const std::shared_ptr<Parameter> weights;  // [3, 1]: w1, w2, b

  private:
    Tensor inputs_;  // [houses, 3]
    Tensor prices_;  // [houses, 1]
};

// A network of one hidden layer, made of what the tape has so far: products of matrices, and
// squares between them. Its ten outputs are to be 1 for the right class and 0 for the others.
class PictureModel {
  public:
    // Weights begin within +-1 / sqrt(inputs). `images` must outlive this object.
    PictureModel(Device& device, const LabelledImages& images, int hidden, Random& random);

    // The mean squared error of these pictures, which are copied to the device for it.
    Variable loss(Tape& tape, Samples samples) const;

    Parameters parameters() const { return {first, second}; }

    // Predicts the most bytes that a forward and a backward pass over so many pictures hold at the
    // same time, without the parameters and their gradients.
    std::size_t activation_bytes(int pictures) const;

    const std::shared_ptr<Parameter> first, second;  // [pixels, hidden], [hidden, 10]

  private:
    Device& device_;
    const LabelledImages& images_;
};

}  // namespace ddp
