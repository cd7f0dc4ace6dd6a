#pragma once
// The chapter's two models. Both compute the mean loss of any number of samples in one go.
#include "01_sgd/sgd.hpp"
#include "04_gradient_accumulation/accumulate.hpp"
#include "common/data/houses.hpp"
#include "common/data/images.hpp"
#include "common/data/random.hpp"

namespace ddp {

// price = bedrooms * w1 + bathrooms * w2 + b as in 01_sgd, for many houses at a time:
// [n, 3] times [3, 1], where a house is (bedrooms, bathrooms, 1).
class HouseBatchModel {
  public:
    // Sets w1, w2 and b to 0, and copies the houses to the device, which must outlive this object.
    HouseBatchModel(Device& device, const std::vector<House>& houses);

    // Records the mean squared error of these houses and returns it, [1].
    Variable loss(Tape& tape, Samples samples) const;

    const std::shared_ptr<Parameter> weights;  // [3, 1]: w1, w2, b

  private:
    Tensor inputs_;  // [houses, 3]
    Tensor prices_;  // [houses, 1]
};

// A network with one hidden layer, made of the operations that the tape has so far: matrix products
// with a square between them. It learns outputs [n, 10] that are 1 for the right class and 0 for
// the others.
class PictureModel {
  public:
    // Draws the weights uniformly from +-1 / sqrt(inputs). `device` and `images` must outlive this
    // object.
    PictureModel(Device& device, const LabelledImages& images, int hidden, Random& random);

    // Copies these pictures to the device; records their mean squared error and returns it, [1].
    Variable loss(Tape& tape, Samples samples) const;

    Parameters parameters() const { return {first, second}; }

    // Predicts the largest number of bytes that a forward and a backward pass over so many pictures
    // hold at the same time, without the parameters and their gradients.
    std::size_t activation_bytes(int pictures) const;

    const std::shared_ptr<Parameter> first, second;  // [pixels, hidden], [hidden, 10]

  private:
    Device& device_;
    const LabelledImages& images_;
};

}  // namespace ddp
