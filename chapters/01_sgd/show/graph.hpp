#pragma once
// The computation graph as a picture in text: the loss on top, what it was computed from below it.
#include <string>

#include "01_sgd/tape.hpp"

namespace ddp {

// One line a node: the tree, then the value from forward and, where backward has left one, the
// gradient (Tape::retain_gradients). For graphs of single numbers. Waits for the device.
std::string draw_graph(const Tape& tape, Variable root);

}  // namespace ddp
