#pragma once
// The chapter's descent without a tape, with derivatives found with a pencil: a loop on the host,
// then kernels on a stream. All of them do the same arithmetic in the same order as the descent
// through the tape.
#include <vector>

#include "01_sgd/house_model.hpp"

namespace ddp {

// price = bedrooms * w1 + bathrooms * w2 + b
struct LinearModel {
    float w1 = 0, w2 = 0, b = 0;
};

// Takes one step for every house, in order, and repeats this `epochs` times. Starts from
// w1 = w2 = b = 0 and returns the learned model.
LinearModel descend_on_host(const std::vector<House>& houses, int epochs, float learning_rate);

// Takes the same steps on the device: the host launches a kernel for every step without waiting for
// it. Waits for the stream at the end.
LinearModel descend_by_launches(Device& device, const HouseData& houses, int epochs,
                                float learning_rate);

// The value of w1 as the host reads it, without and with waiting. Times are in seconds since just
// before the launch.
struct EarlyRead {
    float too_early = 0;      // read as soon as the launch and the copy were enqueued
    float after_waiting = 0;  // read after the stream was synchronised
    double enqueued_s = 0;    // when the host could continue
    double done_s = 0;        // when the stream had finished
};
// Takes them in one launch, by a kernel that loops over all steps, and reads w1 twice.
EarlyRead read_too_early(Device& device, const HouseData& houses, int epochs, float learning_rate);

}  // namespace ddp
