#pragma once
// Explores a case, with the kernels as they are or with one thing taken away from them.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/explore/cases.hpp"
#include "tools/explore/code_places.hpp"
#include "tools/explore/places.hpp"

namespace ddp {

// One thing that is taken away: release and acquire become relaxed, a wait or a store is not there.
// Everywhere, or at one place in the code, or for one block alone.
struct Mistake {
    enum class Part { release, acquire, wait, store } part;
    FlagKind flag;
    std::string lines = "";  // of the CodePlace; empty: everywhere
    int block = -1;          // -1: all
};
std::string name_of(const Mistake& mistake);  // "release of the post"
// Returns all mistakes that are made everywhere.
std::vector<Mistake> all_mistakes();

struct ExploredResult {
    cuda_on_cpu::Exploration exploration;
    bool has_flag = false;  // whether the case uses the mistake's flag
    // The failure, and the execution that shows it: a column a rank, a line an event.
    std::string failure, timeline;
};

// Explores a case for at most so many seconds.
ExploredResult explore_case(const ExploredCase& explored, const std::optional<Mistake>& mistake,
                            double max_seconds);

// A place where a case awaits a flag, or raises it.
struct FlagPlace {
    CodePlace place;
    FlagKind flag;
    bool is_store;

    auto operator<=>(const FlagPlace&) const = default;
};
// Returns all of them.
std::set<FlagPlace> flag_places_of(const ExploredCase& explored);
// Returns what can be taken away at a place: a store and its release, or a wait and its acquire.
std::vector<Mistake> mistakes_at(const FlagPlace& place);

}  // namespace ddp
