#pragma once
// Answers of the run's own network to single pictures, and the weights of its first layer.
#include <filesystem>

#include "03_network/layers/sequential.hpp"
#include "common/data/images.hpp"

namespace ddp {

// Asks the model, in evaluation mode, for the classes of the first 500 test pictures. Prints the
// answer to the first picture of each class, and to ten that it gets wrong. Writes these pictures
// to a CSV file beside `csv`, its name ending in _pictures, and weights of the first layer to one
// in _weights. An empty path writes none.
void show_answers(Device& device, Sequential& model, const LabelledImages& test,
                  const std::filesystem::path& csv);

}  // namespace ddp
