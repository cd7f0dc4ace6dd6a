#pragma once
// Shows the steps in the terminal, in colour, with the ports under them.
#include <string>
#include <vector>

#include "09_all_reduce/show/chunk_report.hpp"

namespace ddp {

// Returns one step as text: a row for each chunk, a column for each rank, and a digit for each rank
// whose numbers are in the chunk. Below that: what has come in, and how much of an array each port
// has carried so far, in either direction. `in_color` gives every rank a colour, by the escape
// sequences of a terminal.
std::string picture_of_step(const std::vector<Step>& steps, std::size_t step, bool in_color);

// Prints all steps. On a terminal, in colour, and each waits for the reader's Enter.
void show_step_by_step(const std::vector<Step>& steps);

}  // namespace ddp
