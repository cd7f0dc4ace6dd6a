// A stream is a queue. The host fills it and goes on; the device takes the work out, in order.
//
//     host     launch copy record launch copy | look   wait for event | look  synchronize | look
//                |                            |        . . . . . . .  |       . . . . . . |
//     stream     +-> double ======> copy  (event)  double ======> copy
//                                      |       |                     |
//     on the host:     0          first = 2    |                second = 4
//                                              +-> the host's wait for the event ends here
#include "02_kernels/streams.hpp"

#include "common/gpu/gpu.hpp"
#include "common/report/bench.hpp"

namespace ddp {
namespace {

// Multiplies every element by two. Takes a few milliseconds for some million elements on a CPU.
__global__ void double_elements(std::size_t n, float* values) {
    for (std::size_t i : grid_range(n))
        values[i] *= 2;
}

}  // namespace

ThreeLooks look_three_times(std::size_t n) {
    Buffer<float> values(std::vector<float>(n, 1.0f));
    // Pinned host memory: a copy into it goes on while the host does something else.
    PinnedBuffer<float> results(2);
    results[0] = results[1] = 0;
    Stream stream;
    Event first_is_there;
    const Stopwatch watch;
    const auto look = [&] { return HostLook{results[0], results[1], watch.seconds()}; };
    const auto enqueue_round = [&](float* to) {
        launch(stream, grid_for(n), double_elements, n, values.data());
        DDP_CHECK(cudaMemcpyAsync(to, values.data() + n - 1, sizeof(float), cudaMemcpyDeviceToHost,
                                  stream));
    };
    // Everything goes into the queue; nothing is waited for.
    enqueue_round(results.data());
    first_is_there.record(stream);
    enqueue_round(results.data() + 1);

    ThreeLooks looks;
    // The mistake: neither result needs to be there.
    looks.at_once = look();
    // An event is a mark in the queue. Here it stands between the two rounds.
    first_is_there.synchronize();
    looks.after_event = look();
    // synchronize waits until the queue is empty.
    stream.synchronize();
    looks.after_synchronize = look();
    return looks;
}

}  // namespace ddp
