// The exercise captured_step: a training step as one launch. Read exercises/15_overlap/README.md
// first.
#include "exercises/15_overlap/captured_step.hpp"

namespace ddp {
namespace {

// Your kernels go here. They can use grid_range(n).

}  // namespace

CapturedStep::CapturedStep(Stream& stream, const std::function<void()>& enqueue) {
    // Begin, enqueue, end, instantiate. What was made, and who destroys it?
    throw NotImplemented("capture");
}

CapturedStep::~CapturedStep() {
    // Destroy what was made and is still there.
}

void CapturedStep::launch(Stream& stream) {
    // One call.
    throw NotImplemented("capture");
}

void enqueue_next_batch(const EpochRows& epoch, const BatchSlot& slot, int* number,
                        Stream& stream) {
    // launch(stream, grid_for(n), kernel, arguments...); The number may only change when all
    // threads have read it.
    throw NotImplemented("number");
}

void enqueue_step(const std::vector<BucketParts>& buckets, Stream& compute, Stream& communication) {
    // event.record(stream), and stream.wait(event). What does each part have to wait for?
    throw NotImplemented("fork");
}

}  // namespace ddp
