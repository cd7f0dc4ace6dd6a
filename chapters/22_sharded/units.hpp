#pragma once
// A unit: the parameters of one block, end to end in one array, cut into a chunk for each rank.
//
//     linear1, three ranks     | weight ..................... . | bias .. . | padding |
//                              | chunk 0       | chunk 1        | chunk 2             |
//
// A rank sums its chunk in the order of an all-reduce of the same array, so the bits equal DDP's.
// This is FSDP1's flat parameter. FSDP2 cuts each parameter along its first dimension instead: a
// rank then has rows with a name, but chunks begin elsewhere, and sums have a different order.
#include <string>
#include <vector>

#include "14_buckets/bucket_plan.hpp"
#include "22_sharded/blocks.hpp"

namespace ddp {

// Where the parameters of a block, or of the root, are.
struct Unit {
    std::string name;
    Parameters parameters{};             // those that are learned
    std::vector<std::size_t> numbers{};  // of each: its index in the list of learned parameters
    std::size_t bucket = 0;              // in the plan
    std::size_t size = 0;                // elements, with the gap after each parameter
    std::size_t chunk = 0;               // elements of each rank's chunk

    // Returns the elements of all chunks: the last one is padded.
    std::size_t padded(int ranks) const { return chunk * static_cast<std::size_t>(ranks); }
};

struct Units {
    BucketPlan plan;          // for DistributedDataParallel, too: one bucket for each unit
    std::vector<Unit> units;  // the root, if there is one; then the blocks, in the order of forward
    std::size_t first_block = 0;  // 1 after a root
};

// Makes a unit of each block that learns, and one of the parameters outside all blocks or in
// several of them: the root. With several nodes of `ranks` ranks each, a rank has a chunk for each
// node. Throws std::invalid_argument if no parameter is learned.
Units units_of(const Blocks& blocks, int ranks, int nodes = 1);

// Everything in a model except its learned parameters. It belongs to none of the units.
class Rest : public Module {
  public:
    explicit Rest(const Module& model) : Module(model.name()), model_(model) {}

    Parameters parameters() const override;  // the frozen ones
    std::vector<NamedTensor> buffers() const override { return model_.buffers(); }
    // Returns the elements of both.
    std::size_t elements() const;

  private:
    const Module& model_;
};

// Slots hold whole units. Unless all units are whole at the same time, the blocks take turns in two
// slots, as long as the largest block, and the root has its own:
//
//     a slot each    | root | block 0 | block 1 | block 2 | block 3 |
//     in turns       | root | block 0, then 2 | block 1, then 3 |
class Slots {
  public:
    Slots(const Units& units, int ranks, bool in_turns);

    // Returns the elements of each slot.
    const std::vector<std::size_t>& sizes() const { return sizes_; }
    // Returns the slot of a unit: the same one in every step, and so the same addresses.
    std::size_t of(std::size_t unit) const { return slots_[unit]; }
    // Returns whether a different unit uses this one's slot, too.
    bool is_shared(std::size_t unit) const;
    // Returns the elements of all slots.
    std::size_t total() const;

  private:
    std::vector<std::size_t> sizes_, slots_;
};

}  // namespace ddp
