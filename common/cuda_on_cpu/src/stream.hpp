#pragma once
// Streams: one OS thread each, which runs what was enqueued in order, while the host goes on.
// Events: marks in a stream that others wait for.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "block.hpp"
#include "cuda_on_cpu/runtime_api.hpp"
#include "cuda_on_cpu/settings.hpp"
#include "kernel_run.hpp"
#include "launch_queue.hpp"
#include "turns.hpp"

namespace cuda_on_cpu {

class Stream;
struct CapturedMark;

// One entry of a stream's queue, run by the stream's thread; passed over on a lost device.
struct Command {
    virtual ~Command() = default;
    virtual void run(Stream& stream) = 0;
    // The kernel that it runs, if that is a cooperative one.
    virtual const PreparedKernel* cooperative_kernel() const { return nullptr; }
};

// The way from the host's threads to the queues. A driver may let in one thread of a process at a
// time and, where its queue is full or it waits for a copy, keep all others out until it goes on:
// also the one whose launch the kernel at the head of that queue waits for. In strict mode it does.
class DriverLock {
  public:
    DriverLock();
    ~DriverLock();
    DriverLock(const DriverLock&) = delete;
    DriverLock& operator=(const DriverLock&) = delete;

  private:
    std::unique_lock<std::mutex> lock_;
};

class Stream {
  public:
    using Ticket = unsigned long;  // counts the commands of a stream from 1

    Stream(int device, bool blocking);
    ~Stream();  // runs what is enqueued, then ends the thread
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Places a command at the end of the queue; the host waits only if the queue is full.
    // `construct` makes the command in the memory that it is given (slot_bytes). `room`: what it
    // takes of the queue's depth.
    template <class Construct>
    Ticket enqueue(Construct construct, std::uint64_t room = 1) {
        const DriverLock driver;
        std::unique_lock lock(mutex_);
        wait_for_room(room, lock);
        const Ticket ticket = enqueued_.load(std::memory_order_relaxed) + 1;
        Slot& slot = slots_[ticket % slot_count];
        slot.command = construct(static_cast<void*>(slot.memory));
        slot.room_to_here = room_taken_ += room;
        if (queue_)
            slot.place = queue_->take_place();
        order_release(&slot);
        enqueued_.store(ticket);
        const bool worker_sleeps = worker_sleeps_;
        lock.unlock();
        if (worker_sleeps)
            work_.notify_one();
        return ticket;
    }

    bool is_done(Ticket ticket) const { return done_.load() >= ticket; }
    Ticket last_ticket() const { return enqueued_.load(); }
    // Waits until the command is done.
    void wait(Ticket ticket);
    // Waits for the host, which finds device memory closed to it.
    void synchronize(Ticket ticket);
    // For a stream that was destroyed and has nothing left to do: its launch queue has one less.
    void leave_queue() { queue_.reset(); }
    // Returns whether the command is done. One that was put off is due now.
    bool ask(Ticket ticket);
    // For the command that runs: puts it off until somebody waits for it, asks for it or has
    // enqueued something behind it, or for as long as a device may well take.
    void put_off();

    void run_kernel(const PreparedKernel& kernel);
    // For the command that runs: lets the next one of the launch queue come to the device beside
    // it. One that does not mostly wait for other kernels claims the worker's core.
    void begin_kernel(bool mostly_waits = false);
    // For the command that runs: it waits for another stream, and computes nothing meanwhile.
    void leave_core() { core_.leave(); }
    // Fails the device if this stream's kernel has run for too long, and interrupts it.
    void check_time_limit();
    // Between the two calls the kernel is enqueued or runs; they end in the order in which they
    // begin.
    void cooperative_kernel_begins(const PreparedKernel& kernel);
    void cooperative_kernel_ends();
    // The name of one that has not ended; empty if there is none.
    std::string unfinished_cooperative_kernel();

    static constexpr std::size_t slot_bytes = 1024;
    const int device;
    const bool blocking;  // waits for the default stream and the other way round

  private:
    static constexpr std::size_t slot_count = max_depth + 3;  // a round number
    static constexpr Ticket nobody_waits = ~Ticket{0};
    struct Slot {
        alignas(64) std::byte memory[slot_bytes];
        Command* command;
        std::uint64_t place;         // in the launch queue, where those are played
        std::uint64_t room_to_here;  // of all commands so far
    };

    void work();
    void run_command(Slot& slot);
    void run_kernel_now(const PreparedKernel& kernel, int workers);
    void choose_turns(bool is_cooperative);
    bool wait_for_work(Ticket done);
    std::uint64_t room_in_use() const;
    void wait_for_room(std::uint64_t room, std::unique_lock<std::mutex>& lock);
    void sleep_until_done(Ticket ticket, std::unique_lock<std::mutex>& lock);

    std::unique_ptr<Slot[]> slots_;
    std::shared_ptr<LaunchQueue> queue_;  // nullptr: one of its own
    std::uint64_t place_ = 0;             // of the command that the worker runs
    std::atomic<Ticket> enqueued_{0};
    std::atomic<Ticket> done_{0};
    // The first ticket that somebody sleeps for: waking sleepers for less would cost them, and us,
    // the core.
    std::atomic<Ticket> awaited_{nobody_waits};
    std::uint64_t room_taken_ = 0;  // by all commands so far
    std::mutex mutex_;
    std::condition_variable work_;
    std::condition_variable progress_;
    bool worker_sleeps_ = false;
    bool ending_ = false;

    std::mutex run_mutex_;
    KernelRun* run_ = nullptr;
    bool has_short_turns_ = false;                             // the worker's
    std::chrono::steady_clock::duration since_cooperative_{};  // that other kernels have run
    std::deque<const PreparedKernel*> cooperative_;            // oldest first

    ClaimedCore core_;  // while the worker has ordinary kernels and products to compute

    BlockExecutor* executor_ = nullptr;  // the worker's, while it lives
    std::thread worker_;
};

// The most that a launch queue has held which a kernel was in that may wait for others, where a
// depth is played.
inline std::atomic<std::uint64_t> max_held = 0;

// One cudaEventRecord: a place in a stream, done when the stream has come there. An event that is
// recorded again gets a new one, while whoever waits for the old one goes on doing so.
struct Recording {
    std::shared_ptr<Stream> stream;
    Stream::Ticket ticket = 0;
    std::chrono::steady_clock::time_point time{};

    bool is_done() const { return stream->is_done(ticket); }
};

}  // namespace cuda_on_cpu

struct CUstream_st {
    std::shared_ptr<cuda_on_cpu::Stream> stream;
};
struct CUevent_st {
    std::shared_ptr<cuda_on_cpu::Recording> last;  // nullptr: never recorded, or in a capture
    bool has_time;
    std::uint64_t room;  // of a launch queue, which a recording takes
    std::shared_ptr<cuda_on_cpu::CapturedMark> mark = nullptr;  // of a capture: see capture.hpp
};
