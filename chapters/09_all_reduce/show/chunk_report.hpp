#pragma once
// Who holds which sums while the ring works: as a table with a row for each step and a column for
// each rank, step by step in the terminal, and as a CSV file for the picture.
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "09_all_reduce/show/recording.hpp"

namespace ddp {

// Returns the chunk that `rank` received between two steps; -1 if it received none.
int received_chunk(const Step& before, const Step& after, int rank);

// Prints the steps as a table.
void print_chunks(const std::vector<Step>& steps);
// Writes recordings beside `csv`: algorithm, step, rank, chunk, ranks (the set), the bytes of this
// chunk that the rank received and sent in this step, and the step's microseconds.
void write_chunks(const std::vector<Recording>& recordings, const std::filesystem::path& csv);

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
