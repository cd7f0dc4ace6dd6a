#pragma once
// The chapter's descent without a tape, its derivatives found with a pencil: as a loop on the host,
// and as kernels on a stream. All of them, and the tape's, do the same arithmetic in the same
// order.
#include <vector>

#include "01_sgd/house_model.hpp"

namespace ddp {

// price = bedrooms * w1 + bathrooms * w2 + b
struct Law {
    float w1 = 0, w2 = 0, b = 0;
};

// A step for every house, in their order, `epochs` times over; from 0.
Law descend_on_host(const std::vector<House>& houses, int epochs, float learning_rate);

// The same on the device: the host launches a kernel for every step, and goes on at once. Waits in
// the end.
Law descend_by_launches(Device& device, const HouseData& houses, int epochs, float learning_rate);

// The same in one launch, by a kernel with a loop, and what the host then sees of w1.
struct EarlyRead {
    float too_early = 0;  // right after the launch, and the copy behind it, were enqueued
    float after_waiting = 0;
    double enqueued_s = 0;  // when the host could go on
    double done_s = 0;      // when the stream had done it all
};
EarlyRead read_too_early(Device& device, const HouseData& houses, int epochs, float learning_rate);

}  // namespace ddp
