#pragma once
// Runs the kernels of several streams in every order of their flags' loads and stores that could
// make a difference, and looks for an order in which they fail. For programs that are linked with
// the library cuda_on_cpu_explorer; explorer.cpp begins with the idea.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cuda_on_cpu/types.hpp"

namespace cuda_on_cpu {

// A stream whose kernels have several blocks counts as so many.
inline constexpr int max_explored_streams = 8;

// Two accesses of the same bytes, one of them a write, and nothing puts one before the other.
struct Race {
    struct Access {
        int stream = 0, block = 0;
        bool is_write = false;
    };
    const std::byte* address = nullptr;
    std::size_t bytes = 0;
    Access first, last;
};

enum class ExploredFailure {
    none,
    race,
    deadlock,      // a stream waits for what no stream will write
    wrong_result,  // what_is_wrong() said so
    endless        // an execution of more than max_steps
};

struct ExplorationOptions {
    // The memory that the streams share. What is elsewhere belongs to one stream.
    std::vector<std::span<std::byte>> memory;
    // Tells whether the value of an atomic place decides nothing, as it is for messages only. In
    // which order it is written and read makes no difference then.
    std::function<bool(const std::byte*)> is_indifferent = nullptr;
    // Returns what is wrong with the memory at the end of an execution, as a sentence, or "".
    std::function<std::string()> what_is_wrong = [] { return ""; };
    // Atomic loads and stores of this order count as relaxed ones.
    std::optional<std::memory_order> without = std::nullopt;
    double max_seconds = 60;  // then it stops, and is not complete
};

struct Exploration {
    std::uint64_t executions = 0;  // to their end, each of them different
    std::size_t steps = 0;         // of the longest: atomic accesses of places that streams share
    double seconds = 0;
    bool is_complete = false;  // all were tried, or one has failed
    ExploredFailure failure = ExploredFailure::none;
    std::string what_is_wrong;  // of a wrong result
    Race race;
};

// Explores what was launched on each of `streams`, in the order of its launches; the blocks of a
// kernel run at the same time. In a program with the explorer no launch runs; it is kept for this
// call, which forgets it. Memory is at the end what it was before. Throws std::runtime_error for
// blocks of more than one thread, for launches on further streams, and for what the explorer cannot
// follow.
Exploration explore(std::span<const cudaStream_t> streams, const ExplorationOptions& options);

}  // namespace cuda_on_cpu
