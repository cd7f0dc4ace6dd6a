#pragma once
// The run's output: one step, drawn (graph.cpp), and the descents by hand beside each other
// (by_hand_report.cpp).
#include <filesystem>
#include <string>
#include <vector>

#include "01_sgd/by_hand.hpp"
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

// Runs the descents of by_hand.hpp and prints their results and times, then what read_too_early
// saw. Writes who did what and when to a CSV file beside `csv`, its name ending in _stream; an
// empty path writes none.
void show_by_hand(Device& device, const std::vector<House>& houses, const HouseData& data,
                  int epochs, double learning_rate, const std::filesystem::path& csv);

// Writes the houses for the picture: a CSV file beside `csv`, its name ending in _houses. An empty
// path writes none.
void write_houses(const std::filesystem::path& csv, const std::vector<House>& houses);

}  // namespace ddp
