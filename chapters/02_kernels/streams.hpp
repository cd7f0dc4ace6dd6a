#pragma once
// A launch returns immediately: what the host reads before, and after, it has waited.
#include <cstddef>

namespace ddp {

// Two results as the host sees them, and when it looks: seconds since just before the first launch.
struct HostLook {
    float first = 0, second = 0;
    double seconds = 0;
};
struct ThreeLooks {
    HostLook at_once;            // as soon as everything was enqueued
    HostLook after_event;        // after waiting for the event between the two results
    HostLook after_synchronize;  // after waiting for the whole stream
};

// Doubles an array of n ones twice on the device, copies its last element to the host after each
// time (2, then 4; the host's memory holds 0 before), and looks at both three times.
ThreeLooks look_three_times(std::size_t n);

}  // namespace ddp
