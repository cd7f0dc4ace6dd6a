// The model as operations on a tape. The same formula stands in by_hand.cu with its derivatives;
// here backward finds them:
//
//     x1 w1 --+
//             +-- add --+
//     x2 w2 --+         +-- add: the prediction --+
//                  b ---+                         +-- subtract -- square: the loss
//                                            y ---+
#include "01_sgd/house_model.hpp"

#include "01_sgd/operations.hpp"

namespace ddp {
namespace {

// Copies one field of every house to the device: a column of the table, [count].
Tensor column(Device& device, const std::vector<House>& houses, float House::*field) {
    std::vector<float> values;
    for (const House& house : houses)
        values.push_back(house.*field);
    return Tensor(device, {static_cast<int>(values.size())}, values);
}

// Returns a parameter [1] with the value 0.
std::shared_ptr<Parameter> zero(Device& device, const std::string& name) {
    return std::make_shared<Parameter>(name, Tensor(device, {1}, std::vector<float>{0.0f}));
}

}  // namespace

HouseData::HouseData(Device& device, const std::vector<House>& houses)
    : count(static_cast<int>(houses.size())),
      bedrooms(column(device, houses, &House::bedrooms)),
      bathrooms(column(device, houses, &House::bathrooms)),
      price(column(device, houses, &House::price)) {}

HouseModel::HouseModel(Device& device)
    : w1(zero(device, "w1")), w2(zero(device, "w2")), b(zero(device, "b")) {}

Variable HouseModel::loss(Tape& tape, const HouseData& houses, int i) const {
    const auto house = static_cast<std::size_t>(i);
    // The data: one house, seen through views of the columns. Nothing is copied.
    const Variable x1 = tape.constant(houses.bedrooms.view(house, {1}), "x1");
    const Variable x2 = tape.constant(houses.bathrooms.view(house, {1}), "x2");
    const Variable y = tape.constant(houses.price.view(house, {1}), "y");
    // price = x1 w1 + x2 w2 + b
    const Variable for_bedrooms = multiply(x1, tape.parameter(w1));
    const Variable for_bathrooms = multiply(x2, tape.parameter(w2));
    const Variable for_both = add(for_bedrooms, for_bathrooms);
    const Variable prediction = add(for_both, tape.parameter(b));
    // loss = (prediction - y)²
    return square(subtract(prediction, y));
}

}  // namespace ddp
