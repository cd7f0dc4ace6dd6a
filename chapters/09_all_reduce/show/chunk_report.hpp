#pragma once
// Who holds what while the ring goes round: as a table with a row for each step and a column for
// each rank, step by step in the terminal, and as a CSV file for the picture.
#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "05_ranks/world.hpp"

namespace ddp {

// A table of more ranks would not fit a page.
constexpr int most_ranks_in_a_picture = 8;

// The ranks whose numbers are in a chunk: bit r for rank r.
using RankSet = unsigned int;
// One rank's array: a set for each chunk.
using Holdings = std::array<RankSet, most_ranks_in_a_picture>;
// The arrays of all ranks after one step, by rank.
using Step = std::vector<Holdings>;

// Lets the ring that the host drives (host_ring.hpp) sum an array in which rank r has 2^r, and
// reads every rank's array after every step. Returns the steps, the beginning first, in the process
// of rank 0, and nothing in others. The world has two ranks or more, of one node, and no more than
// most_ranks_in_a_picture.
std::vector<Step> watch_ring(World& world);

// Returns the chunk that `rank` received between two steps; -1 if it received none.
int received_chunk(const Step& before, const Step& after, int rank);

// Prints the steps as a table, and writes them beside `csv`: step, rank, chunk, ranks (the set),
// received (1 for the chunk that came in this step).
void print_chunks(const std::vector<Step>& steps);
void write_chunks(const std::vector<Step>& steps, const std::filesystem::path& csv);

// Writes beside `csv` how many arrays the busiest port carries, by the formulas, for 2 to 64 ranks.
void write_ports(const std::filesystem::path& csv);

// ---- In the terminal, in colour, with the ports under the steps

// Returns one step as text: a row for each chunk, a column for each rank, and a digit for each rank
// whose numbers are in the chunk. Below that: what has come in, and how much of an array each port
// has carried so far, in either direction. `in_color` gives every rank a colour, by the escape
// sequences of a terminal.
std::string picture_of_step(const std::vector<Step>& steps, std::size_t step, bool in_color);

// Prints all steps. On a terminal, in colour, and each waits for the reader's Enter.
void show_step_by_step(const std::vector<Step>& steps);

}  // namespace ddp
