#pragma once
// The accuracy of a test in which ranks have seen different numbers of samples, as a table.
#include "11_data_parallel/averages.hpp"

namespace ddp {

// Returns the score of rank `rank` in the table: it has seen 10 (rank + 1) pictures, and all but 5
// of its predictions were correct. So the ranks' accuracies grow with the numbers of their
// pictures, and from two ranks on their mean is less than the accuracy over all pictures.
Score shown_score(int rank);

// Computes the accuracy of a test in which each rank has its shown_score, in the four ways of
// averages.hpp. Rank 0 prints the table. All ranks call it together.
void show_averages(Communicator& communicator, Stream& stream);

}  // namespace ddp
