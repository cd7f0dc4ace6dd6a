#pragma once
// One step of data parallel training with numbers that can be followed by hand.
#include "01_sgd/device.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

// Rank r finds a gradient of 2 (r + 1) in its part of 100 samples: +2 and +4 on two ranks.
inline constexpr int samples_of_first_step = 100;

struct FirstStep {
    int samples = 0;     // of this rank
    float begin = 0;     // the parameter after the broadcast; each rank's own was its number + 1
    float gradient = 0;  // of this rank's samples
    float average = 0;   // of all ranks' gradients
    float end = 0;       // the parameter after a step of 0.1
};
// All ranks call it together.
FirstStep take_first_step(Communicator& communicator, Device& device);

// As a table, on rank 0.
void show_first_step(Communicator& communicator, Device& device);

}  // namespace ddp
