#pragma once
// Places in the code of the kernels: the calls by which a rank waits for a flag or raises it.
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ddp {

// Where a flag is awaited or raised, as a reader knows it: a call of wait_..., raise_... or
// store_release. (06_messages/wait.cuh, of which each of them consists, does not count.)
struct CodePlace {
    std::string lines;  // "collective.cuh:78 collective.cuh:104 ": what tells it from all others
    std::string name;   // "begin_collective": the function that calls

    auto operator<=>(const CodePlace&) const = default;
};

class CodePlaces {
  public:
    // Returns the place of an access, from the calls that have led there, by addr2line, which comes
    // with every compiler.
    const CodePlace& at(std::span<const void* const> calls);

  private:
    struct Line {
        std::string function, line;
    };
    const std::vector<Line>& lines_of(const void* call);

    std::map<const void*, std::vector<Line>> lines_;
    std::map<std::vector<const void*>, CodePlace> places_;
};

}  // namespace ddp
