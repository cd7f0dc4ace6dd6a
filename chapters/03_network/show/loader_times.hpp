#pragma once
// Measures what pinned memory and prefetching gain.
#include <string>

#include "01_sgd/tensor.hpp"
#include "common/data/images.hpp"

namespace ddp {

// The times of a copy from the host to the device, in seconds since its call.
struct CopyTime {
    double until_return_s = 0;  // when the call returned and the host went on
    double until_done_s = 0;    // when the copy was complete
};

struct LoaderTimes {
    std::size_t copy_bytes = 0;
    CopyTime pageable, pinned;
    int steps = 0;                 // training steps in each measurement
    double step_waiting_s = 0;     // the host gathers a batch when the device has done the last one
    double step_prefetched_s = 0;  // the host gathers the next batch while the device computes
};

// Measures the copies and the steps, each `rounds` times in turn, and returns medians. The steps
// train a model of their own, called `model` ("mlp" or "cnn"), on the first pictures, so the
// caller's model does not change. `batch` is in samples.
LoaderTimes measure_loader(Device& device, const LabelledImages& images, const std::string& model,
                           int batch, int steps, int rounds);

}  // namespace ddp
