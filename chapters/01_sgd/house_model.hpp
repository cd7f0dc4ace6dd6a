#pragma once
// The chapter's model: price = bedrooms * w1 + bathrooms * w2 + b, one house at a time.
#include "01_sgd/sgd.hpp"
#include "01_sgd/tape.hpp"
#include "common/data/houses.hpp"

namespace ddp {

// Houses in device memory, copied there once, as three columns.
struct HouseData {
    HouseData(Device& device, const std::vector<House>& houses);

    int count;
    Tensor bedrooms, bathrooms, price;  // [count] each
};

class HouseModel {
  public:
    // All three parameters start at 0.
    explicit HouseModel(Device& device);

    // Returns the squared error of the predicted price of house `i`, recorded on `tape`.
    Variable loss(Tape& tape, const HouseData& houses, int i) const;

    Parameters parameters() const { return {w1, w2, b}; }

    std::shared_ptr<Parameter> w1, w2, b;
};

}  // namespace ddp
