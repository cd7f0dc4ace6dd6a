#pragma once
// Owners of streams and events.
#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <utility>

#include "common/gpu/check.hpp"
#include "common/gpu/launch.hpp"

namespace ddp {

class Event;

// Returns `status`, the answer of cudaStreamQuery or cudaEventQuery. "Not ready" is no failure, but
// may stay behind as the thread's last error, which a later check would report: it is cleared.
inline cudaError_t forget_not_ready(cudaError_t status) {
    if (status == cudaErrorNotReady)
        cudaGetLastError();
    return status;
}

// Whose blocks a GPU starts first when there is room for some. Blocks that run are not interrupted.
enum class Priority { normal, highest };

// The streams of this process, which share its devices' queues.
inline std::atomic<std::size_t> streams_alive = 0;

// A stream of the current device that never waits for the default stream (cudaStreamNonBlocking),
// so ranks that share a GPU do not wait for each other unasked.
class Stream {
  public:
    explicit Stream(Priority priority = Priority::normal) {
        int least = 0, greatest = 0;
        DDP_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
        DDP_CHECK(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                               priority == Priority::highest ? greatest : least));
        streams_alive++;
        if (loads_kernels())
            carry_out_a_first_command();
    }
    Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
    Stream& operator=(Stream&& other) noexcept {
        std::swap(stream_, other.stream_);
        return *this;
    }
    ~Stream() {
        if (stream_ == nullptr)
            return;
        cudaStreamDestroy(stream_);
        streams_alive--;
    }

    operator cudaStream_t() const { return stream_; }
    // Waits until everything that was enqueued is done. Throws GpuError if a kernel of the device
    // failed.
    void synchronize(Where where = Where::current()) {
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", where);
    }
    // Makes all work that is enqueued from now on wait for `event`'s last recording. The host does
    // not wait.
    inline void wait(const Event& event, Where where = Where::current());

  private:
    // A kernel on a stream that has carried out nothing yet may stand behind what another new
    // stream has to do after a kernel that waits for it. So it was on an H100 (driver 580) at once
    // with four threads, and never if each stream had done something before (gpu_probe
    // new_streams).
    inline void carry_out_a_first_command();

    cudaStream_t stream_ = nullptr;
};

// Says who needs an event: a host that sleeps until it, a clock, or another stream. A queue of an
// H200 holds 56 of the first kind, and a thousand of the others (gpu_probe full_queue).
enum class EventFor : unsigned int {
    hosts = cudaEventBlockingSync,
    times = 0,
    order = cudaEventDisableTiming
};

// A mark in a stream, with the time at which the stream reached it. A host thread that waits for it
// sleeps, and leaves its core to other ranks.
class Event {
  public:
    Event() : Event(EventFor::hosts) {}
    explicit Event(EventFor use) {
        DDP_CHECK(cudaEventCreateWithFlags(&event_, static_cast<unsigned int>(use)));
    }
    Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    Event& operator=(Event&& other) noexcept {
        std::swap(event_, other.event_);
        return *this;
    }
    ~Event() {
        if (event_ != nullptr)
            cudaEventDestroy(event_);
    }

    operator cudaEvent_t() const { return event_; }
    // Puts the mark into `stream`, after all that was enqueued.
    void record(const Stream& stream, Where where = Where::current()) {
        check(cudaEventRecord(event_, stream), "cudaEventRecord", where);
    }
    // Waits until the stream has reached the mark.
    void synchronize(Where where = Where::current()) {
        check(cudaEventSynchronize(event_), "cudaEventSynchronize", where);
    }
    // Returns the seconds from `start` to this event. Both must have been recorded and reached.
    double seconds_since(const Event& start, Where where = Where::current()) const {
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime",
              where);
        return milliseconds * 1e-3;
    }

  private:
    cudaEvent_t event_ = nullptr;
};

void Stream::carry_out_a_first_command() {
    Event first;
    first.record(*this);
    synchronize();
}

void Stream::wait(const Event& event, Where where) {
    check(cudaStreamWaitEvent(stream_, event, 0), "cudaStreamWaitEvent", where);
}

}  // namespace ddp
