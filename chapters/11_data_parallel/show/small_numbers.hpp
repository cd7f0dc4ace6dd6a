#pragma once
// The chapter's idea with small numbers: one step of data parallel training to follow by hand, the
// accuracy of a test in which ranks have seen different numbers of samples, and a collective that
// rank 0 calls alone.
#include "01_sgd/device.hpp"
#include "11_data_parallel/averages.hpp"

namespace ddp {

// Over all ranks. The gradient of rank r's samples is 2 (r + 1): +2 and +4 on two ranks.
inline constexpr int samples_of_first_step = 100;

struct FirstStep {
    int samples = 0;     // of this rank
    float begin = 0;     // the parameter after the broadcast; before it, rank r had r + 1
    float gradient = 0;  // of this rank's samples
    float average = 0;   // of all ranks' gradients
    float end = 0;       // the parameter after a step with a learning rate of 0.1
};
// Takes the step, and returns this rank's numbers. All ranks call it together.
FirstStep take_first_step(Communicator& communicator, Device& device);

// Takes the step; rank 0 prints the numbers of all ranks. All ranks call it together.
void show_first_step(Communicator& communicator, Device& device);

// Returns the score of rank `rank` in the table: it has seen 10 (rank + 1) pictures, and all but 5
// of its predictions were correct. So the ranks' accuracies grow with the numbers of their
// pictures, and with two ranks or more their mean is less than the accuracy over all pictures.
Score shown_score(int rank);

// Computes the accuracy of a test in which each rank has its shown_score, in the four ways of
// averages.hpp. Rank 0 prints the table. All ranks call it together.
void show_averages(Communicator& communicator, Stream& stream);

// Computes a validation loss with a collective. With `is_for_all` every rank calls it. Without,
// only rank 0 calls it, the other ranks call their next collective, and the run fails within a
// second.
void validate_on_rank_0(Rank& rank, bool is_for_all);

}  // namespace ddp
