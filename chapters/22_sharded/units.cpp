// Two blocks and a root become three units. The plan lists them from the last to the first, as
// backward does: the root's gradients are final at the very end, where its first use was.
//
//     parameters    table | layer0.weight  layer0.bias | layer1.weight  layer1.bias | norm
//     units         0: table, norm | 1: layer0.weight, .bias | 2: layer1.weight, .bias
//     plan          bucket 0: unit 2    bucket 1: unit 1    bucket 2: unit 0
//     slots         in turns: 0 | 1 | 2      a third block would be in slot 1 again
#include "22_sharded/units.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "09_all_reduce/all_reduce.hpp"
#include "14_buckets/flat_buffers.hpp"
#include "14_buckets/plan_text.hpp"
#include "22_sharded/slots.hpp"

namespace ddp {
namespace {

constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

// Returns the one block that has the parameter, or nowhere.
std::size_t block_of(const std::vector<Block>& blocks, const std::shared_ptr<Parameter>& searched) {
    std::size_t found = nowhere;
    for (std::size_t b = 0; b < blocks.size(); b++)
        if (std::ranges::find(blocks[b].parameters, searched) != blocks[b].parameters.end()) {
            if (found != nowhere)
                return nowhere;  // a second use
            found = b;
        }
    return found;
}

// Writes the assignment in the text that rank 0 would send, and lets the reader of that text give
// every gradient its place.
BucketPlan plan_of(const std::vector<Unit>& units, const Parameters& learned) {
    std::ostringstream text;
    text << "bucket_plan " << units.size() << "\n";
    for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
        text << name_of(ElementType::float32) << " " << unit->parameters.size();
        for (std::size_t i = 0; i < unit->parameters.size(); i++)
            text << " " << unit->numbers[i] << " " << unit->parameters[i]->value.size();
        text << "\n";
    }
    return decode_plan(text.str(), gradient_sizes(learned));
}

}  // namespace

// Deals the parameters to the units, lets the plan lay each unit out, and cuts it into chunks.
Units units_of(const Blocks& blocks, int ranks, int nodes) {
    const Parameters learned = learned_parameters(blocks.model.parameters());
    if (learned.empty())
        throw std::invalid_argument(
            "there is nothing to shard: the model needs a parameter that is not frozen");
    // The root and all blocks; then those that learn nothing are left out.
    std::vector<Unit> units{{.name = "root"}};
    for (const Block& block : blocks.blocks)
        units.push_back({.name = block.name});
    for (std::size_t number = 0; number < learned.size(); number++) {
        const std::size_t block = block_of(blocks.blocks, learned[number]);
        Unit& unit = units[block == nowhere ? 0 : block + 1];
        unit.parameters.push_back(learned[number]);
        unit.numbers.push_back(number);
    }
    const std::size_t first_block = units[0].parameters.empty() ? 0 : 1;
    std::erase_if(units, [](const Unit& unit) { return unit.parameters.empty(); });

    const auto all_ranks = static_cast<std::size_t>(ranks * nodes);
    Units result{plan_of(units, learned), std::move(units), first_block};
    for (std::size_t i = 0; i < result.units.size(); i++) {
        Unit& unit = result.units[i];
        unit.bucket = result.units.size() - 1 - i;  // the plan begins with the last
        unit.size = result.plan.buckets[unit.bucket].size;
        // The chunk of an all-reduce of this unit: here is where the bits are decided.
        const std::size_t chunk = chunk_of(unit.size, all_ranks, 0, sizeof(float)).size;
        unit.chunk = static_cast<std::size_t>(nodes) * chunk;  // one for each node
    }
    return result;
}

// Gives each unit before `first` a slot of its own, and deals two slots to the others.
Slots::Slots(const Units& layout, int ranks, bool in_turns) {
    const std::vector<Unit>& units = layout.units;
    const std::size_t first = in_turns ? layout.first_block : units.size();
    for (std::size_t u = 0; u < first; u++) {
        sizes_.push_back(units[u].padded(ranks));
        slots_.push_back(u);
    }
    std::size_t largest = 0;  // any of them may come to either slot
    for (std::size_t u = first; u < units.size(); u++) {
        largest = std::max(largest, units[u].padded(ranks));
        slots_.push_back(first + (u - first) % 2);
    }
    sizes_.insert(sizes_.end(), std::min<std::size_t>(2, units.size() - first), largest);
}

// A slot is shared from the third block on.
bool Slots::is_shared(std::size_t unit) const {
    return std::ranges::count(slots_, slots_[unit]) > 1;
}

// The padding counts, too.
std::size_t Slots::total() const {
    return std::accumulate(sizes_.begin(), sizes_.end(), std::size_t{0});
}

}  // namespace ddp
