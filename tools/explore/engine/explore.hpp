#pragma once
// Runs the kernels of several streams in every order of their flags' loads and stores that could
// make a difference, and looks for an order in which they fail. For programs that are linked with
// the library cuda_on_cpu_explorer; explorer.cpp begins with the idea.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cuda_on_cpu/types.hpp"

namespace cuda_on_cpu {

// A stream whose kernels have several blocks counts as so many.
inline constexpr int max_explored_streams = 8;

enum class Action {
    read,    // of data, as all that is not atomic
    write,   // of data
    load,    // atomic
    store,   // atomic: the moment at which it reaches memory
    update,  // atomic load and store at once: fetch_add, compare_exchange
    wait     // the block polls here and never goes on
};

// An event of one stream in an execution: a line of a timeline.
struct ExploredStep {
    int stream = 0;
    Action action = Action::read;
    const std::byte* address = nullptr;
    std::size_t bytes = 0;
    std::uint64_t value = 0;  // of an atomic access
    std::memory_order order = std::memory_order_relaxed;
    int block = 0;
};

enum class ExploredFailure {
    none,
    race,          // two accesses, one of them a write, and nothing puts one before the other
    deadlock,      // a stream waits for what no stream will write
    wrong_result,  // is_right() said so
    endless        // an execution of more than max_steps
};

// An atomic load or store, as the kernel has it.
struct AtomicAccess {
    const std::byte* address = nullptr;
    bool is_store = false;
    std::memory_order order = std::memory_order_relaxed;
    // Where it is in the code: the return addresses of the calls that have led there, the kernel's
    // first. (Of functions that were not inlined; the lines of each say the rest: addr2line -i.)
    std::span<const void* const> calls;
    int block = 0;
};
// The access that takes its place, as if the kernel had been written so.
struct ChangedAccess {
    std::memory_order order = std::memory_order_relaxed;
    bool is_left_out = false;  // of a load in a wait: the wait is not there
};

struct ExplorationOptions {
    // The memory that the streams share. What is elsewhere belongs to one stream.
    std::vector<std::span<std::byte>> memory;
    // Tells whether the value of an atomic place decides nothing, as it is for messages only. In
    // which order it is written and read makes no difference then.
    std::function<bool(const std::byte*)> is_indifferent = nullptr;
    // Returns what is wrong with the memory at the end of an execution, as a sentence, or "".
    std::function<std::string()> what_is_wrong = [] { return ""; };
    // If it is given, every atomic load and store is what it returns.
    std::function<ChangedAccess(const AtomicAccess&)> change = nullptr;
    double max_seconds = 60;  // then it stops, and is not complete
};

struct Exploration {
    std::uint64_t executions = 0;  // to their end, each of them different
    std::uint64_t repeated = 0;    // begun, and left when they turned out to repeat others
    std::size_t steps = 0;         // of the longest: atomic accesses of places that streams share
    // The number of orders of its steps that the first execution stands for; 0: too many to count.
    double orders = 0;
    double seconds = 0;
    bool is_complete = false;  // all were tried, or one has failed
    ExploredFailure failure = ExploredFailure::none;
    std::string what_is_wrong;           // of a wrong result
    std::vector<ExploredStep> timeline;  // of the execution that failed
    ExploredStep conflict;               // of a race: the access that the last step collides with
};

// Explores what was launched on each of `streams`, in the order of its launches; the blocks of a
// kernel run at the same time. In a program with the explorer no launch runs; it is kept for this
// call, which forgets it. Memory is at the end what it was before. Throws std::runtime_error for
// blocks of more than one thread, for launches on further streams, and for what the explorer cannot
// follow.
Exploration explore(std::span<const cudaStream_t> streams, const ExplorationOptions& options);

}  // namespace cuda_on_cpu
