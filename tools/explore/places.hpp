#pragma once
// The places in the ranks' arenas: names for a timeline, and the flags that a mistake is
// about.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ddp {

// The message of a flag.
enum class FlagKind {
    call,            // a rank has begun a collective
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
};

class Places {
  public:
    void add(NamedArena arena) { arenas_.push_back(std::move(arena)); }

    // Returns what lies there: "rank 1's input[0..31]", "rank 1's posted[0]".
    std::string name_of(const std::byte* address, std::size_t bytes) const;
    // Returns the kind of the flag there, if it is one.
    std::optional<FlagKind> flag_at(const std::byte* address) const;

  private:
    const NamedArena* arena_of(const std::byte* address) const;

    std::vector<NamedArena> arenas_;
};

}  // namespace ddp
