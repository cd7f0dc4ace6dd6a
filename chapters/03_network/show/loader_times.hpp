#pragma once
// What pinned memory and prefetch are worth.
#include <string>

#include "01_sgd/tensor.hpp"
#include "common/data/images.hpp"

namespace ddp {

// A copy from the host to the device, in seconds from its call.
struct CopyTime {
    double until_return_s = 0;  // until the host goes on
    double until_done_s = 0;
};

struct LoaderTimes {
    std::size_t copy_bytes = 0;
    CopyTime pageable, pinned;
    int steps = 0;                 // of training, in each measurement
    double step_waiting_s = 0;     // the host gathers a batch when the device has done the last
    double step_prefetched_s = 0;  // the host gathers the next one while the device computes
};

// Measures all in turn, `rounds` times, and takes medians. The steps train another model of that
// name on the first pictures, so that nothing else changes.
LoaderTimes measure_loader(Device& device, const LabelledImages& images, const std::string& model,
                           int batch, int steps, int rounds);

}  // namespace ddp
