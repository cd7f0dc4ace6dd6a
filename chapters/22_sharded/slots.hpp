#pragma once
// Slots hold whole units. Unless all units are whole at the same time, the blocks take turns in two
// slots, as long as the largest block, and the root has its own:
//
//     a slot each    | root | block 0 | block 1 | block 2 | block 3 |
//     in turns       | root | block 0, then 2 | block 1, then 3 |
#include "22_sharded/units.hpp"

namespace ddp {

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
