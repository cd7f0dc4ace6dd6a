// Two layers become two units. The plan lists them from the last to the first, as backward does:
//
//     parameters    linear1.weight  linear1.bias | linear2.weight  linear2.bias
//     units         0: linear1                   | 1: linear2
//     plan          bucket 0: linear2.weight, linear2.bias
//                   bucket 1: linear1.weight, linear1.bias
#include "22_sharded/units.hpp"

#include <algorithm>
#include <sstream>

#include "09_all_reduce/all_reduce.hpp"
#include "14_buckets/flat_buffers.hpp"

namespace ddp {
namespace {

// Returns the part of a parameter's name before the dot.
std::string layer_of(const Parameter& parameter) {
    return parameter.name.substr(0, parameter.name.rfind('.'));
}

// Writes the assignment in the text that rank 0 would send, and lets the reader of that text give
// every gradient its place.
BucketPlan plan_of(const std::vector<Unit>& units, const Parameters& learned) {
    std::ostringstream text;
    text << "bucket_plan " << units.size() << "\n";
    for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
        text << name_of(ElementType::float32) << " " << unit->parameters.size();
        for (const auto& parameter : unit->parameters)
            text << " " << std::ranges::find(learned, parameter) - learned.begin() << " "
                 << parameter->value.size();
        text << "\n";
    }
    return decode_plan(text.str(), gradient_sizes(learned));
}

}  // namespace

// Cuts the model where the layer's name changes: the model lists the parameters layer by layer.
Units units_of(const Module& model, int ranks) {
    const Parameters learned = learned_parameters(model.parameters());
    if (learned.empty())
        throw std::invalid_argument(
            "there is nothing to shard: the model needs a parameter that is not frozen");
    Units result;
    std::vector<Unit>& units = result.units;
    for (const auto& parameter : learned) {
        const std::string layer = layer_of(*parameter);
        if (units.empty() || units.back().name != layer)
            units.push_back({.name = layer});
        units.back().parameters.push_back(parameter);
    }
    result.plan = plan_of(units, learned);
    for (std::size_t i = 0; i < units.size(); i++) {
        units[i].bucket = units.size() - 1 - i;
        units[i].size = result.plan.buckets[units[i].bucket].size;
        // The chunk of an all-reduce of this unit: here is where the bits are decided.
        units[i].chunk =
            chunk_of(units[i].size, static_cast<std::size_t>(ranks), 0, sizeof(float)).size;
    }
    return result;
}

// The largest unit is the size of a slot.
std::size_t Units::largest(int ranks) const {
    std::size_t most = 0;
    for (const Unit& unit : units)
        most = std::max(most, unit.padded(ranks));
    return most;
}

std::size_t Units::total(int ranks) const {
    std::size_t sum = 0;
    for (const Unit& unit : units)
        sum += unit.padded(ranks);
    return sum;
}

}  // namespace ddp
