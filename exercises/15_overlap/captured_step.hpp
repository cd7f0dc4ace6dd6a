#pragma once
// Exercise captured_step: a training step that the host gives to the device in one call, as a CUDA
// graph.
//
//     host        begin   A   B   C   end        launch     launch     launch
//     device                                     A  B  C    A  B  C    A  B  C
//
// You may call: cudaStreamBeginCapture(), cudaStreamEndCapture(), cudaGraphInstantiate(),
// cudaGraphLaunch(), cudaGraphDestroy(), cudaGraphExecDestroy(); grid_for(n), launch() and, in a
// kernel, grid_range(n); event.record(stream) and stream.wait(event).
// The check also tries: an epoch of a single batch, batches with more rows than a block has
// threads.
#include <functional>
#include <vector>

#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task capture. A step that is captured once, and launched again and again.
class CapturedStep {
  public:
    // Calls enqueue() once, and captures what it enqueues on `stream`: nothing of that runs. Other
    // threads can capture and allocate meanwhile.
    CapturedStep(Stream& stream, const std::function<void()>& enqueue);
    // Launches that are under way come to their end.
    ~CapturedStep();
    CapturedStep(const CapturedStep&) = delete;
    CapturedStep& operator=(const CapturedStep&) = delete;

    // Enqueues the captured work by one call of CUDA.
    void launch(Stream& stream);

  private:
    cudaGraphExec_t executable_ = nullptr;  // all that a launch needs
};

// The rows of an epoch, in device memory.
struct EpochRows {
    const float* inputs;   // [count, columns]
    const float* targets;  // [count]
    int count, columns;    // 1 or more
};
// Where a captured step finds its batch, in device memory: always at the same place.
struct BatchSlot {
    float* inputs;   // [room, columns]
    float* targets;  // [room]
    int* rows;       // how many of these rows the batch has
    int room;        // rows of a batch, 1 or more; the last batch of an epoch may have fewer
};

// Task number. Enqueues what brings the next batch into the slot: that is batch *number, in device
// memory, where the device counts on. Batch k of an epoch begins at row k * room, and after the
// last batch comes batch 0. The slot's rows that a smaller batch does not need stay as they are.
// Called once and captured, N launches bring N batches.
void enqueue_next_batch(const EpochRows& epoch, const BatchSlot& slot, int* number, Stream& stream);

// Enqueues a part of a step on the stream.
using StepPart = std::function<void(Stream&)>;
// The parts of a step that one bucket needs.
struct BucketParts {
    StepPart backward;  // computes the bucket's gradients
    StepPart sum;       // adds them up over the ranks
    StepPart update;    // makes the optimizer's step for the bucket's parameters
};

// Task fork. Enqueues a step by calling each part once: all of backward, and then all updates, on
// `compute`, and the sums on `communication`. Each part waits for the same bucket's part before it,
// and for no more. If `compute` is captured, all of it is in one graph.
void enqueue_step(const std::vector<BucketParts>& buckets, Stream& compute, Stream& communication);

}  // namespace ddp
