#pragma once
// A thread of the host that does for a stream what kernels cannot, such as calling MPI. (NCCL has
// one for the network, and calls it so.)
//
// A kernel brings the data into pinned memory slice by slice, raises a flag for each, waits for the
// thread to raise another one, and takes the slice's result back. While the thread works on one
// slice, the kernel brings the next:
//
//     kernel   in 0 ─ in 1 ─ (wait) ─ out 0 ─ in 2 ─ (wait) ─ out 1 ─ ...
//                  ╲      ╲          ╱     ╲               ╱
//     thread        ╲─── work 0 ────╱       ╲── work 1 ───╱
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "05_ranks/rank.hpp"
#include "06_messages/control.hpp"
#include "common/gpu/buffer.hpp"

namespace ddp {

// In pinned memory: what kernel and thread tell each other.
struct StagingFlags {
    Flag staged[max_blocks];  // [b]: of how many slices block b has brought its share, so far
    Flag done;                // how many slices the thread has done, so far
    Flag stop;                // 1: the run has failed, end every wait
};

// An array, cut into slices that fit into pinned memory.
struct Slices {
    std::size_t array_bytes, slice_bytes;

    // One, which is empty, where there is no data: there is work to do all the same.
    __host__ __device__ std::size_t count() const {
        return array_bytes == 0 ? 1 : (array_bytes + slice_bytes - 1) / slice_bytes;
    }
    __host__ __device__ std::size_t size(std::size_t i) const {
        return i + 1 < count() ? slice_bytes : array_bytes - i * slice_bytes;
    }
};

// The data that the thread works on: pinned memory with this slice of each array, one array after
// the other.
struct StagedSlice {
    const std::byte* input;
    std::byte* output;
    std::size_t bytes;  // of one array
};

struct StagingJob {
    // In device memory: so many arrays of `array_bytes` each, one after the other; 0 for none.
    const void* input;
    std::size_t input_arrays;
    void* output;
    std::size_t output_arrays;
    std::size_t array_bytes;
    // Called by the thread for each slice in turn; an exception from it fails the run.
    std::function<void(const StagedSlice&)> work;
};

// A wait of the thread has ended because the run has failed elsewhere.
struct StagingStopped {};

class HostStaging final : private Abortable {
  public:
    // `rank` must outlive it.
    explicit HostStaging(Rank& rank);
    ~HostStaging() override { finish(); }
    HostStaging(const HostStaging&) = delete;
    HostStaging& operator=(const HostStaging&) = delete;

    // The job begins when all before it on `stream` is done, and all behind it waits for its end.
    // Jobs are done one after the other, in the order of the calls, on whatever streams.
    void enqueue(StagingJob job, Stream& stream);

    // Waits until everything on `stream` is done. Throws what has gone wrong with it, or RunFailed
    // if the run has failed elsewhere.
    void synchronize(Stream& stream);

    // Awaits what was enqueued, or cuts it short where an exception is under way. Returns whether
    // all of it was done. Nothing can be enqueued any more.
    bool finish();

    // For work that waits: until ready(), giving way to others. False if that takes more than
    // `limit_s` (0: it may). Throws StagingStopped.
    bool wait_until(const std::function<bool()>& ready, double limit_s) const;

  private:
    // A job as the thread sees it. Its first slice is number `first_slice` of all.
    struct Task {
        Slices slices;
        std::uint64_t first_slice;
        unsigned int blocks;
        std::function<void(const StagedSlice&)> work;
    };

    void stop() noexcept override;
    std::string error() override;

    void run();
    bool is_staged(const Task& task, std::uint64_t slice) const;
    void carry_out(const Task& task) const;

    Rank& rank_;
    std::shared_ptr<PinnedBuffer<StagingFlags>> flags_;
    std::shared_ptr<PinnedBuffer<std::byte>> staging_;
    std::shared_ptr<Buffer<std::uint64_t>> done_;
    const int exceptions_ = std::uncaught_exceptions();
    std::uint64_t slices_ = 0;            // of all that was enqueued
    Event last_;                          // where what was enqueued last ends
    cudaStream_t last_stream_ = nullptr;  // ... and on which stream
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> tasks_;
    bool ended_ = false;
    std::string error_;
    std::thread thread_;  // the last member: it uses all others
};

}  // namespace ddp
