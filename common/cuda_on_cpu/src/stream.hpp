#pragma once
// Streams: one OS thread each, which runs what was enqueued in order, while the host goes on.
// Events: marks in a stream that others wait for.
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "block.hpp"
#include "cuda_on_cpu/runtime_api.hpp"
#include "kernel_run.hpp"

namespace cuda_on_cpu {

class Stream;

// One entry of a stream's queue, run by the stream's thread. On a lost device only those run that
// others wait for.
struct Command {
    virtual ~Command() = default;
    virtual void run(Stream& stream) = 0;
    virtual bool runs_on_lost_device() const { return false; }
};

class Stream {
  public:
    using Ticket = unsigned long;  // counts the commands of a stream from 1

    Stream(int device, bool blocking);
    ~Stream();  // runs what is enqueued, then ends the thread
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Places a command at the end of the queue; the host waits only if the queue is full.
    // `construct` makes the command in the memory that it is given (kSlotBytes).
    template <class Construct>
    Ticket enqueue(Construct construct) {
        std::unique_lock lock(mutex_);
        wait_for_room(lock);
        const Ticket ticket = enqueued_.load(std::memory_order_relaxed) + 1;
        Slot& slot = slots_[ticket % kSlots];
        slot.command = construct(static_cast<void*>(slot.memory));
        enqueued_.store(ticket);
        if (worker_sleeps_)
            work_.notify_one();
        return ticket;
    }

    bool is_done(Ticket ticket) const { return done_.load() >= ticket; }
    Ticket last_ticket() const { return enqueued_.load(); }
    // Until the command is done. A host thread that waits also watches the kernels' time limit.
    void wait(Ticket ticket);

    void run_kernel(const PreparedKernel& kernel);
    // Fails the device if this stream's kernel has run for too long, and interrupts it.
    void check_time_limit();
    // The name of the cooperative kernel that runs now; empty if none does.
    std::string running_cooperative_kernel();

    static constexpr std::size_t kSlotBytes = 320;
    const int device;
    const bool blocking;  // waits for the default stream and the other way round

  private:
    static constexpr std::size_t kSlots = 1024;  // as deep as a GPU's launch queue
    struct Slot {
        alignas(64) std::byte memory[kSlotBytes];
        Command* command;
    };

    void work();
    bool wait_for_work(Ticket done);
    void wait_for_room(std::unique_lock<std::mutex>& lock);

    std::unique_ptr<Slot[]> slots_;
    std::atomic<Ticket> enqueued_{0};
    std::atomic<Ticket> done_{0};
    std::atomic<int> waiters_{0};
    std::mutex mutex_;
    std::condition_variable work_;
    std::condition_variable progress_;
    bool worker_sleeps_ = false;
    bool ending_ = false;

    std::mutex run_mutex_;
    KernelRun* run_ = nullptr;

    BlockExecutor* executor_ = nullptr;  // the worker's, while it lives
    std::thread worker_;
};

class Event {
  public:
    using Time = std::chrono::steady_clock::time_point;

    // A new recording has been enqueued: its number.
    unsigned long begin_recording();
    void finish_recording(unsigned long number);
    unsigned long last_recording();
    bool is_done(unsigned long number);
    void wait(unsigned long number);
    Time time();

  private:
    std::mutex mutex_;
    std::condition_variable finished_;
    unsigned long begun_ = 0;
    std::atomic<unsigned long> done_{0};
    Time time_{};
};

}  // namespace cuda_on_cpu

struct CUstream_st {
    std::shared_ptr<cuda_on_cpu::Stream> stream;
};
struct CUevent_st {
    std::shared_ptr<cuda_on_cpu::Event> event;
    bool has_time;
};
