#pragma once
// Small programs for the explorer, each of which one stream runs.
#include <array>
#include <atomic>

#include "common/gpu/gpu.hpp"

namespace ddp::test {

struct Instruction {
    // wait: until the place has the value or more; wait_exactly: until it has the value; wait_any:
    // until this place or the other one has the value or more, and which of them is found first.
    enum Kind { load, store, add, fence, wait, wait_exactly, wait_any } kind = load;
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
    unsigned int data[16];  // accessed plainly
};

// Runs program `number`.
void launch_program(Stream& stream, SmallMemory* memory, int number, const SmallProgram& program);

// Runs up to max_programs programs, by a block each.
using SmallPrograms = std::array<SmallProgram, max_programs>;
void launch_blocks(Stream& stream, SmallMemory* memory, int blocks, const SmallPrograms& programs);
// Each of two blocks writes a place of the data; each reads what the other one has written.
void launch_writing_blocks(Stream& stream, SmallMemory* memory);
void launch_reading_blocks(Stream& stream, SmallMemory* memory);

// A message: one stream writes data and raises a flag, the other one waits for it and reads.
struct Message {
    std::memory_order store = std::memory_order_release, load = std::memory_order_acquire;
    bool has_fences = false;       // before the store and after the wait
    bool polls_relaxed = false;    // the wait polls by relaxed loads, and `load` ends it
    unsigned int awaited = 1;      // the value that the receiver waits for
    bool awaits_exactly = false;   // ... and no other
    int sleeps = 1;                // between two polls
    bool is_posted_twice = false;  // by two stores: 1, and at once 2
    bool is_acknowledged = false;  // then the data is written once more, after an acknowledgement
    bool waits_for_ack = true;
};
void launch_sender(Stream& stream, SmallMemory* memory, const Message& message);
void launch_receiver(Stream& stream, SmallMemory* memory, const Message& message);

}  // namespace ddp::test
