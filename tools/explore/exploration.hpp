#pragma once
// Explores a case, with the kernels as they are or with one thing taken away from them.
#include <optional>
#include <string>
#include <vector>

#include "tools/explore/cases.hpp"
#include "tools/explore/places.hpp"

namespace ddp {

// One thing that is taken away: release and acquire become relaxed, a wait is not there.
struct Mistake {
    enum class Part { release, acquire, wait } part;
    FlagKind flag;
};
std::string name_of(const Mistake& mistake);  // "release of the post"
// Returns all mistakes.
std::vector<Mistake> all_mistakes();

struct ExploredResult {
    cuda_on_cpu::Exploration exploration;
    bool has_flag = false;  // whether the case uses the mistake's flag
    // The failure, and the execution that shows it: a column a rank, a line an event.
    std::string failure, timeline;
};

// Explores a case for at most so many seconds.
ExploredResult explore_case(const ExploredCase& explored, const std::optional<Mistake>& mistake,
                            double most_seconds);

}  // namespace ddp
