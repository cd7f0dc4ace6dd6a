#pragma once
// The queues between the host and a GPU, of which it has few (CUDA_ON_CPU=queues=N). A new stream
// takes one that the fewest others have, and those that share one stand behind each other:
//
//     stream 0   kernel A waits for B   event behind A      both streams in one queue:
//     stream 1                                        B     A │ event │ B
//
// The queue hands its commands to the GPU in the order of the host's calls. A kernel is handed over
// when it begins, so A alone would not keep B. The event is handed over when it has come, and that
// is when A has ended: B never begins.
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace cuda_on_cpu {

class LaunchQueue {
  public:
    // Returns the place of the command that the host enqueues now; places count from 1.
    std::uint64_t take_place();
    // Waits until everything before `place` is handed over.
    void await(std::uint64_t place);
    // Hands the command at `place` over, for which await() has returned. A second time is nothing.
    void hand_over(std::uint64_t place);

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t taken_ = 0;
    std::uint64_t handed_over_ = 0;
};

// Returns the queue of the next stream of the device; nullptr where queues are not played.
std::shared_ptr<LaunchQueue> next_queue(int device);

}  // namespace cuda_on_cpu
