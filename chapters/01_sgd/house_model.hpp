#pragma once
// The chapter's model: price = bedrooms * w1 + bathrooms * w2 + b, one house at a time.
#include "01_sgd/sgd.hpp"
#include "01_sgd/tape.hpp"
#include "common/data/houses.hpp"

namespace ddp {

// The houses in device memory, copied there once: three columns with one value per house.
struct HouseData {
    HouseData(Device& device, const std::vector<House>& houses);

    int count;
    Tensor bedrooms, bathrooms, price;  // [count] each
};

// The model's three parameters, [1] each, and its loss.
class HouseModel {
  public:
    // Sets all three parameters to 0. `device` must outlive the model.
    explicit HouseModel(Device& device);

    // Records the squared error of the predicted price of house `i` on `tape`; returns it, [1].
    Variable loss(Tape& tape, const HouseData& houses, int i) const;

    Parameters parameters() const { return {w1, w2, b}; }

    std::shared_ptr<Parameter> w1, w2, b;
};

}  // namespace ddp
