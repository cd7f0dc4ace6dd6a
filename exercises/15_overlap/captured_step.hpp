#pragma once
// The contract of the exercise captured_step: a training step that the host gives to the device in
// one call, as a CUDA graph. ("CUDA Programming Guide", the section CUDA Graphs; CUDA Runtime API,
// "Stream Management" and "Graph Management".)
#include <functional>
#include <vector>

#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task capture. A step that is captured once, and launched again and again.
class CapturedStep {
  public:
    // Calls enqueue() once, and captures what it enqueues on `stream`: nothing of that runs. While
    // it does so, other threads capture and allocate as they like.
    CapturedStep(Stream& stream, const std::function<void()>& enqueue);
    // Does not wait. Launches that are under way come to their end.
    ~CapturedStep();
    CapturedStep(const CapturedStep&) = delete;
    CapturedStep& operator=(const CapturedStep&) = delete;

    // Enqueues the captured work on `stream`, which may be another one, by one call of CUDA. The
    // host does not wait.
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

// Task number. Enqueues what brings the next batch into the slot. Its number is *number, in device
// memory, where the device counts on: batch k of an epoch begins at row k * room, and behind the
// epoch's last batch comes batch 0. The slot's rows behind a batch that is not full keep what they
// held. The host does not wait, and knows no number: called once and captured, N launches bring N
// batches. Right for any grid of any blocks.
void enqueue_next_batch(const EpochRows& epoch, const BatchSlot& slot, int* number, Stream& stream);

// Enqueues a part of a step on the stream.
using StepPart = std::function<void(Stream&)>;
// The parts of a step that one bucket needs.
struct BucketParts {
    StepPart backward;  // computes the bucket's gradients
    StepPart sum;       // adds them up over the ranks
    StepPart update;    // makes the optimizer's step for the bucket's parameters
};

// Task fork. Enqueues a step by calling each part once. All of backward, bucket by bucket, and then
// the updates run on `compute`, and the sums on `communication`, in the order of the buckets. Each
// part begins as soon as the part of the same bucket before it has ended, and what its stream has
// had before. The host does not wait. Whoever captures `compute` has all of it in one graph, and
// `communication` is free again when the capture ends.
void enqueue_step(const std::vector<BucketParts>& buckets, Stream& compute, Stream& communication);

}  // namespace ddp
