#pragma once
// Takes each call of a wait, a raise or a store away alone, and says of one that nothing misses why
// nothing can.
#include <string>
#include <vector>

#include "tools/explore/exploration.hpp"

namespace ddp {

struct TakenAway {
    std::string algorithm;
    Mistake mistake;
    std::string function;     // that makes the call
    std::string failure;      // of the first case that fails; empty: none does
    bool is_complete = true;  // whether all cases were explored to the end
};

// Takes the calls of the cases away, one after the other: in one case after the other that has the
// call, until one fails.
std::vector<TakenAway> take_each_call_away(const std::vector<ExploredCase>& cases, double seconds);

// Why a protocol holds without a call.
struct Reason {
    std::vector<std::string> algorithms;
    FlagKind flag;
    std::vector<std::string> functions;
    std::string text;
};
const std::vector<Reason>& reasons();

// Returns which of reasons() is the call's, counted from 1; 0 if there is none.
std::size_t reason_for(const TakenAway& call);

}  // namespace ddp
