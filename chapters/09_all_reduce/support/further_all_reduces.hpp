#pragma once
// All-reduces that a program brings along: the reader's own.
#include <cstddef>
#include <string>
#include <vector>

namespace ddp {

class Peers;
class Stream;

// An all-reduce that a program brings along, of floats, in place in the arena of `peers`.
struct FurtherAllReduce {
    std::string name;
    void (*run)(Peers& peers, float* data, std::size_t count, Stream& stream);
};
// None, but for a program that is linked with a definition of its own: one with the reader's
// exercise.
std::vector<FurtherAllReduce> further_all_reduces();

}  // namespace ddp
