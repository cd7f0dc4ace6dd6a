#pragma once
// The places in the ranks' arenas: names for a timeline, and the flags that a mistake is
// about.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/explore/engine/explore.hpp"

#include "10_nodes/network/fifo.hpp"

namespace ddp {

// The message of a flag.
enum class FlagKind {
    call,            // a rank has begun a collective, or wants the slots of a FIFO
    post,            // data is ready
    acknowledgement  // data was read
};
std::string name_of(FlagKind kind);

// An array in a rank's arena.
struct NamedArray {
    std::string name;
    std::span<const std::byte> bytes;
    std::size_t element = sizeof(float);
};

// The arena of one rank. It begins with the rank's control block.
struct NamedArena {
    int rank = 0;
    std::span<std::byte> bytes;
    std::vector<NamedArray> arrays;
    const FifoHead* fifo = nullptr;
};

class Places {
  public:
    explicit Places(int streams_of_rank) : streams_of_rank_(streams_of_rank) {}

    void add(NamedArena arena) { arenas_.push_back(std::move(arena)); }

    // Returns what lies there: "rank 1's input[0..31]", "rank 1's posted[0]".
    std::string name_of(const std::byte* address, std::size_t bytes) const;
    // Returns the kind of the flag there, if it is one.
    std::optional<FlagKind> flag_at(const std::byte* address) const;

    // Returns whether it belongs to a record of a rank's last operation, which is for messages.
    bool is_record(const std::byte* address) const;
    // Returns whose step it is; and which of the rank's streams or blocks takes it, but the first:
    // " on stream 1", " in block 1".
    int rank_of(const cuda_on_cpu::ExploredStep& step) const {
        return step.stream / streams_of_rank_;
    }
    std::string part_of_rank(const cuda_on_cpu::ExploredStep& step) const;

  private:
    const NamedArena* arena_of(const std::byte* address) const;

    const int streams_of_rank_;
    std::vector<NamedArena> arenas_;
};

}  // namespace ddp
