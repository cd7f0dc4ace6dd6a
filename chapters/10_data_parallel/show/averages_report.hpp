#pragma once
// The accuracy of a test in which ranks have seen different numbers of pictures, as a table.
#include "10_data_parallel/averages.hpp"

namespace ddp {

// Computes the accuracy of a test in which rank r has seen 10 (r + 1) pictures, in the four ways of
// averages.hpp. Rank 0 prints the table. All ranks call it together.
void show_averages(Communicator& communicator, Stream& stream);

}  // namespace ddp
