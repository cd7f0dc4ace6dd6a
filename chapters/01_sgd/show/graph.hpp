#pragma once
// One step, drawn: the graph after backward as a tree in the terminal, and the tape as a file for
// the picture of boxes.
#include <filesystem>
#include <string>
#include <vector>

#include "01_sgd/house_model.hpp"
#include "01_sgd/sgd.hpp"

namespace ddp {

// Returns a table with one line per node: the tree, the value from forward, and the gradient if
// backward has kept it (Tape::retain_gradients). The values must be single numbers. Waits for the
// device.
std::string draw_graph(const Tape& tape, Variable root);

// Takes the step of house `i` and prints it: the graph after backward, and the parameters before
// and after. Writes the tape to the file `csv`, unless that is empty: a line for each box.
void show_step(HouseModel& model, Optimizer& optimizer, const HouseData& data, int i,
               const std::filesystem::path& csv);

// Returns a row of a table: its name, then the three parameters.
std::vector<std::string> row_of(const std::string& name, const HouseModel& model);

}  // namespace ddp
