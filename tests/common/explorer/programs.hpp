#pragma once
// Small programs for the explorer, each of which one stream runs.
#include <array>
#include <atomic>

#include "common/gpu/gpu.hpp"

namespace ddp::test {

struct Instruction {
    // read, write: data, plainly; all others: flags. wait: until the place has the value or more;
    // wait_exactly: until it has the value; wait_any: until this place or the other one has the
    // value or more, and which of them is found first.
    enum Kind { read, write, load, store, add, fence, wait, wait_exactly, wait_any } kind = load;
    int place = 0;
    unsigned int value = 0;
    std::memory_order order = std::memory_order_relaxed;
};

inline constexpr int max_instructions = 4, max_places = 2, max_programs = 3;

struct SmallProgram {
    std::array<Instruction, max_instructions> code;
    int size = 0;
};

// The memory that the streams share.
struct SmallMemory {
    alignas(64) unsigned int places[max_places][16];
    // The values that each program has loaded, by instruction; of wait_any: 1 for its place, 2 for
    // the other one.
    unsigned int seen[max_programs][max_instructions];
    unsigned int data[max_places];
};

// Runs program `number`.
void launch_program(Stream& stream, SmallMemory* memory, int number, const SmallProgram& program);

// Runs up to max_programs programs, by a block each.
using SmallPrograms = std::array<SmallProgram, max_programs>;
void launch_blocks(Stream& stream, SmallMemory* memory, int blocks, const SmallPrograms& programs);
}  // namespace ddp::test
