// The exercise captured_step: a training step as one launch. Read exercises/15_overlap/README.md
// first.
#include "exercises/15_overlap/captured_step.hpp"

namespace ddp {
namespace {

// stub
//: Your kernels go here. They can use grid_range(n).

// Copies the batch whose number is *number into the slot.
__global__ void bring_batch(EpochRows epoch, BatchSlot slot, const int* number) {
    const int first = *number * slot.room, left = epoch.count - first;
    const auto rows = static_cast<std::size_t>(left < slot.room ? left : slot.room);
    const auto columns = static_cast<std::size_t>(epoch.columns);
    for (std::size_t i : grid_range(rows * columns))
        slot.inputs[i] = epoch.inputs[first * columns + i];
    for (std::size_t i : grid_range(rows))
        slot.targets[i] = epoch.targets[first + i];
}

// Says how many rows the batch has, and counts on. Runs in a single thread, when all others have
// read the number.
__global__ void count_batch(EpochRows epoch, BatchSlot slot, int* number) {
    const int left = epoch.count - *number * slot.room;
    *slot.rows = left < slot.room ? left : slot.room;
    *number = left > slot.room ? *number + 1 : 0;
}
// end stub

}  // namespace

CapturedStep::CapturedStep(Stream& stream, const std::function<void()>& enqueue) {
    // stub: capture
    //: Begin, enqueue, end, instantiate. What was made, and who destroys it?
    DDP_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    enqueue();
    DDP_CHECK(cudaStreamEndCapture(stream, &graph));
    DDP_CHECK(cudaGraphInstantiate(&executable_, graph, 0));
    DDP_CHECK(cudaGraphDestroy(graph));
    // end stub
}

CapturedStep::~CapturedStep() {
    // stub
    //: Destroy what was made and is still there.
    cudaGraphExecDestroy(executable_);
    // end stub
}

void CapturedStep::launch(Stream& stream) {
    // stub: capture
    //: One call.
    DDP_CHECK(cudaGraphLaunch(executable_, stream));
    // end stub
}

void enqueue_next_batch(const EpochRows& epoch, const BatchSlot& slot, int* number,
                        Stream& stream) {
    // stub: number
    //: launch(stream, grid_for(n), kernel, arguments...); The number may only change when all
    //: threads have read it.
    const std::size_t elements = static_cast<std::size_t>(slot.room) * epoch.columns;
    launch(stream, grid_for(elements), bring_batch, epoch, slot, number);
    launch(stream, {1, 1}, count_batch, epoch, slot, number);
    // end stub
}

void enqueue_step(const std::vector<BucketParts>& buckets, Stream& compute, Stream& communication) {
    // stub: fork
    //: event.record(stream), and stream.wait(event). What does each part have to wait for?
    Event computed;
    std::vector<Event> summed(buckets.size());
    for (std::size_t b = 0; b < buckets.size(); b++) {
        buckets[b].backward(compute);
        computed.record(compute);
        communication.wait(computed);  // the first time it joins the capture
        buckets[b].sum(communication);
        summed[b].record(communication);
    }
    for (std::size_t b = 0; b < buckets.size(); b++) {
        compute.wait(summed[b]);  // the last one joins the streams again
        buckets[b].update(compute);
    }
    // end stub
}

}  // namespace ddp
