#pragma once
// The cases that `./book explore all_reduce` explores: each protocol in a case that is small, and
// still has all that can go wrong.
#include <span>
#include <string>
#include <vector>

#include "tools/explore/engine/explore.hpp"

#include "06_messages/peers.hpp"
#include "09_all_reduce/support/further_all_reduces.hpp"

namespace ddp {

// One protocol, on some ranks. Each round of each rank is: take new numbers into the input, run,
// keep the output, and overwrite it. So every array is written again as soon as that is allowed,
// and too early if the protocol lets a rank go too early.
struct ExploredCase {
    std::string algorithm;
    int ranks = 2;
    int rounds = 1;
    std::size_t count = 0;
    std::string note;  // what is special about it: "2 slices"
    // Launches the protocol itself.
    std::function<void(Peers& peers, const float* input, float* output, std::size_t count,
                       Stream& stream)>
        run;
    // Returns the output of a rank, from the numbers of all ranks; nothing, where it has none.
    std::function<std::vector<float>(int rank, const std::vector<std::vector<float>>& numbers)>
        expected;
    int blocks = 1;   // of its kernels, where they may have several
    int streams = 1;  // of each rank: the rounds go to one after the other
    bool has_fifos = false;
};

// An output holds it before and after a round.
inline constexpr float overwritten = -1;

// The arrays of one rank, of `count` floats each, in its arena. Every round has its own numbers,
// which tell rank, round and place, and its own sums.
struct CaseArrays {
    CaseArrays(Peers& peers, const ExploredCase& explored);

    ArenaBuffer<float> numbers, results;  // of all rounds, one after the other
    ArenaBuffer<float> input, output;     // of each stream
    ArenaBuffer<float> blank;             // what overwrites them
};

// Returns all cases, and those of the all-reduces that the program brings along.
std::vector<ExploredCase> explored_cases();

// Return those of fifo_cases.cu and mailbox_cases.cu, which are among them.
std::vector<ExploredCase> fifo_cases();
std::vector<ExploredCase> mailbox_cases();

// Launches all rounds of this rank.
void launch_rounds(Peers& peers, const ExploredCase& explored, CaseArrays& arrays,
                   std::span<Stream> streams);

// Returns the number of a rank's input in a round, at place i.
float number_of(int rank, int round, std::size_t i);

}  // namespace ddp
