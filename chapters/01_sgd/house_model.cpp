#include "01_sgd/house_model.hpp"

#include "01_sgd/operations.hpp"

namespace ddp {
namespace {

Tensor column(Device& device, const std::vector<House>& houses, float House::*field) {
    std::vector<float> values;
    for (const House& house : houses)
        values.push_back(house.*field);
    return Tensor(device, {static_cast<int>(values.size())}, values);
}

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
    const Variable x1 = tape.constant(houses.bedrooms.view(house, {1}), "x1");
    const Variable x2 = tape.constant(houses.bathrooms.view(house, {1}), "x2");
    const Variable y = tape.constant(houses.price.view(house, {1}), "y");
    const Variable bedrooms_part = multiply(x1, tape.parameter(w1));
    const Variable bathrooms_part = multiply(x2, tape.parameter(w2));
    const Variable prediction = add(add(bedrooms_part, bathrooms_part), tape.parameter(b));
    return square(subtract(prediction, y));
}

}  // namespace ddp
