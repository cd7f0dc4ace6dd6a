#pragma once
// What a collective leaves behind on each rank, for tests that ask which algorithm it was: the
// rank's record, its flags, and that it did not make the host wait.
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "exercises/support/ranks.hpp"

namespace ddp::test {

// What to look for if ranks wait for each other in vain.
inline const std::string words_for_steps =
    " (Who waits for what? A consume(s, ...) waits for a post(s) of the other rank, and a "
    "wait_for_ack(s) for an ack(s).)";

// Returns "1, 2 and 4"; "no rank" for none.
std::string ranks_text(const std::set<int>& ranks);

// Takes memory of a rank's arena, of each rank another amount: arrays that are allocated after it
// lie at another place than those of other ranks, as after any other allocation. What is free
// around them holds numbers by which outside_words() knows them.
ArenaBuffer<float> move_arrays(Peers& peers);
// Returns what to make of results that come of such numbers, or "".
std::string outside_words(const std::vector<float>& results);

// Makes one call of `collective` and compares what it leaves behind with what it should. `what`
// begins the sentences. Throws Wrong on all ranks alike.
struct RightTrace {
    int root = -1;  // that the call must name; -1: it has none
    // Returns what is wrong with the ranks that have posted to rank `rank`, or "".
    std::function<std::string(int rank, const std::set<int>& posted_by)> judge;
};
void check_trace(int ranks, const OnFloats& collective, const RightTrace& right,
                 const std::string& what);

// Checks that the threads of each rank share the elements that they write to its array.
void check_who_writes(int ranks, const OnFloats& collective);

// Checks that the host does not wait in the call, neither for the stream nor for other ranks, and
// that the call reads its data only when the work that was enqueued before it is done. All of rank
// r's elements are r + 1, and `right` in the result.
void check_enqueues_only(int ranks, const OnFloats& collective, float right);

}  // namespace ddp::test
