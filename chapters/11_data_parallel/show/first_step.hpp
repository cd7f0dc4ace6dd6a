#pragma once
// One step of data parallel training with numbers that one can follow by hand.
#include "01_sgd/device.hpp"
#include "09_all_reduce/communicator.hpp"

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

}  // namespace ddp
