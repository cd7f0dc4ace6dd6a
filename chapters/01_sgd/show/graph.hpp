#pragma once
// The computation graph as a picture in text: the loss on top, what it was computed from below it.
#include <string>

#include "01_sgd/tape.hpp"

namespace ddp {

// Returns a table with one line per node: the tree, the value from forward, and the gradient if
// backward has kept it (Tape::retain_gradients). The values must be single numbers. Waits for the
// device.
std::string draw_graph(const Tape& tape, Variable root);

}  // namespace ddp
