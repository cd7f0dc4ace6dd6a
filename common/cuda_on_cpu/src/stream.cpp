#include "stream.hpp"

#include <sched.h>

#include <algorithm>
#include <cuda/atomic>
#include <optional>
#include <vector>

#include "cuda_on_cpu/observe.hpp"
#include "errors.hpp"
#include "faults.hpp"
#include "memory.hpp"
#include "multiprocessors.hpp"
#include "pause.hpp"
#include "protection.hpp"
#include "runtime.hpp"

namespace cuda_on_cpu {
namespace {

using namespace std::chrono_literals;

// Waking a sleeping thread costs microseconds, so whoever waits looks again for about as long
// first; longer would take the core from the very thread that is awaited.
constexpr int spins = 400;

// Returns whether the calling thread is bound to one core, as a rank's host and streams may be. The
// thread that it waits for then has the same core, and cannot run while this one looks again.
bool has_one_core() {
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) == 1;
}

template <class Ready>
bool spin_until(Ready ready) {
    if (ready())
        return true;
    if (has_one_core())
        return false;
    for (int i = 0; i < spins; i++) {
        if (ready())
            return true;
        pause_briefly();
    }
    return ready();
}

// OS threads for blocks that run at the same time, as those of a cooperative kernel must.
class BlockThreads {
  public:
    // Runs the blocks on `workers` threads, of which the calling one with its executor is the
    // first. Each takes every `workers`-th block.
    void run(KernelRun& run, BlockExecutor& executor, std::uint64_t workers);

  private:
    struct Member {
        std::mutex mutex;
        std::condition_variable changed;
        KernelRun* run = nullptr;
        std::uint64_t first = 0, step = 1;
        bool busy = false;
        std::thread thread;
    };
    static void work(Member& member);
    Member* borrow();

    std::mutex mutex_;
    std::vector<Member*> idle_;
};

BlockThreads& block_threads() {
    static auto* instance = new BlockThreads;  // its threads end with the process
    return *instance;
}

void BlockThreads::work(Member& member) {
    SignalStack signal_stack;
    BlockExecutor executor;
    take_short_turns(true);
    std::unique_lock lock(member.mutex);
    for (;;) {
        member.changed.wait(lock, [&] { return member.busy; });
        lock.unlock();
        {
            DeviceAccess access;
            executor.run(*member.run, member.first, member.step);
        }
        lock.lock();
        member.busy = false;
        lock.unlock();
        member.changed.notify_all();
        lock.lock();
    }
}

BlockThreads::Member* BlockThreads::borrow() {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
        Member* member = idle_.back();
        idle_.pop_back();
        return member;
    }
    auto* member = new Member;
    member->thread = std::thread([member] {
        pthread_setname_np(pthread_self(), "blocks");  // of whichever rank's kernel
        work(*member);
    });
    member->thread.detach();
    return member;
}

void BlockThreads::run(KernelRun& run, BlockExecutor& executor, std::uint64_t workers) {
    std::vector<Member*> members;
    for (std::uint64_t first = 1; first < workers; first++) {
        Member* member = borrow();
        {
            std::lock_guard lock(member->mutex);
            member->run = &run;
            member->first = first;
            member->step = workers;
            member->busy = true;
        }
        member->changed.notify_all();
        members.push_back(member);
    }
    executor.run(run, 0, workers);
    for (Member* member : members) {
        std::unique_lock lock(member->mutex);
        member->changed.wait(lock, [&] { return !member->busy; });
    }
    std::lock_guard lock(mutex_);
    idle_.insert(idle_.end(), members.begin(), members.end());
}

// For ThreadSanitizer, which must find no order among the blocks of a launch, nor the shared memory
// of one block in that of another: each has an OS thread, and so thread-local storage, that is new.
// Blocks that take turns may be many. Then those that are seven apart share a thread, and count as
// ordered: seven, since kernels pair blocks that are a power of two apart.
void run_on_new_threads(KernelRun& run) {
    const std::uint64_t count =
        run.kernel.shape.cooperative ? run.blocks() : std::min<std::uint64_t>(run.blocks(), 7);
    std::vector<std::thread> threads;
    for (std::uint64_t first = 0; first < count; first++)
        threads.emplace_back([&run, first, count] {
            SignalStack signal_stack;
            BlockExecutor executor;
            DeviceAccess access;
            executor.run(run, first, count);
        });
    for (std::thread& thread : threads)
        thread.join();
}

std::atomic<void (*)(const FinishedKernel&)> kernel_observer{nullptr};

std::mutex& driver_mutex() {
    static auto* instance = new std::mutex;
    return *instance;
}

// One in eight cooperative kernels, and so those of each rank, ends late.
void end_late(double milliseconds) {
    static std::atomic<std::uint32_t> kernels = 0;
    if (milliseconds > 0 && (kernels++ * 2654435761u) >> 29 == 0)
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

}  // namespace

DriverLock::DriverLock() {
    const Unseen bookkeeping;  // two launches are not in order because of it
    if (settings().strict)
        lock_ = std::unique_lock(driver_mutex());
}

DriverLock::~DriverLock() {
    const Unseen bookkeeping;
    if (lock_.owns_lock())
        lock_.unlock();
}

void observe_kernels(void (*observer)(const FinishedKernel&)) {
    kernel_observer.store(observer);
}

// ---- Stream

Stream::Stream(int device, bool blocking)
    : device(device),
      blocking(blocking),
      slots_(new Slot[slot_count]),
      queue_(next_queue(device)),
      worker_([this] {
          // "rank 2", the name of the thread that has made the stream, becomes "rank 2 stream".
          char name[16] = "";
          pthread_getname_np(pthread_self(), name, sizeof name);
          pthread_setname_np(pthread_self(), (std::string(name) + " stream").substr(0, 15).c_str());
          work();
      }) {}

Stream::~Stream() {
    {
        std::lock_guard lock(mutex_);
        ending_ = true;
        work_.notify_one();
    }
    worker_.join();
}

void Stream::work() {
    SignalStack signal_stack;
    BlockExecutor executor;
    executor_ = &executor;
    for (Ticket done = 0; wait_for_work(done); done++) {
        Slot& slot = slots_[(done + 1) % slot_count];
        order_acquire(&slot);
        run_command(slot);
        slot.command->~Command();
        done_.store(done + 1);
        const Unseen bookkeeping;
        if (done_.load() >= awaited_.load()) {
            {
                std::lock_guard lock(mutex_);
                awaited_.store(nobody_waits);  // whoever still has to wait says so again
            }
            // Without the lock, here and elsewhere: whoever wakes may have the core at once, and
            // must not find the lock taken by the thread that it has just pushed aside.
            progress_.notify_all();
        }
    }
}

void Stream::run_command(Slot& slot) {
    if (queue_)
        queue_->await(place_ = slot.place);
    if (!device_is_lost())
        slot.command->run(*this);
    if (queue_)
        queue_->hand_over(place_);
}

void Stream::begin_kernel(bool mostly_waits) {
    if (mostly_waits)
        leave_core();
    else
        core_.claim();
    if (queue_)
        queue_->hand_over(place_);
}

// False when the stream ends.
bool Stream::wait_for_work(Ticket done) {
    const Unseen bookkeeping;
    if (spin_until([&] { return enqueued_.load() > done; }))
        return true;
    leave_core();
    std::unique_lock lock(mutex_);
    worker_sleeps_ = true;
    work_.wait(lock, [&] { return enqueued_.load() > done || ending_; });
    worker_sleeps_ = false;
    return enqueued_.load() > done;
}

// Waits until some command is done, at most 50 ms. A waiting thread also checks the kernels' time
// limits.
void Stream::sleep_until_done(Ticket ticket, std::unique_lock<std::mutex>& lock) {
    awaited_.store(std::min(awaited_.load(), ticket));
    if (worker_sleeps_)
        work_.notify_one();
    if (is_done(ticket) || progress_.wait_for(lock, 50ms) == std::cv_status::no_timeout)
        return;
    lock.unlock();
    check_time_limits();
    lock.lock();
}

// Returns the room that the commands take which are not done.
std::uint64_t Stream::room_in_use() const {
    const Ticket done = done_.load();
    return room_taken_ - (done == 0 ? 0 : slots_[done % slot_count].room_to_here);
}

// Where there is no room, waits until half of the commands are done. Waking for each would make two
// threads alternate.
void Stream::wait_for_room(std::uint64_t room, std::unique_lock<std::mutex>& lock) {
    const int played = settings().depth;
    const auto depth = static_cast<std::uint64_t>(played > 0 ? played : max_depth);
    while ((room_in_use() > 0 && room_in_use() + room > depth) ||
           enqueued_.load() - done_.load() >= slot_count - 1)
        sleep_until_done((done_.load() + enqueued_.load() + 1) / 2, lock);
    if (played == 0)
        return;
    const Unseen bookkeeping;
    std::lock_guard run_lock(run_mutex_);
    static std::mutex mutex;
    std::lock_guard lock_of_all(mutex);
    if (!cooperative_.empty())
        max_held = std::max(max_held.load(), room_in_use() + room);
}

void Stream::wait(Ticket ticket) {
    if (spin_until([&] { return is_done(ticket); }))
        return;
    std::unique_lock lock(mutex_);
    while (!is_done(ticket))
        sleep_until_done(ticket, lock);
}

bool Stream::ask(Ticket ticket) {
    if (is_done(ticket))
        return true;
    std::lock_guard lock(mutex_);
    awaited_.store(std::min(awaited_.load(), ticket));
    if (worker_sleeps_)
        work_.notify_one();
    return false;
}

void Stream::put_off() {
    const Unseen bookkeeping;
    const Ticket ticket = done_.load() + 1;
    std::unique_lock lock(mutex_);
    worker_sleeps_ = true;
    work_.wait_for(lock, 100ms, [&] {
        return enqueued_.load() > ticket || awaited_.load() <= ticket || ending_;
    });
    worker_sleeps_ = false;
}

void Stream::synchronize(Ticket ticket) {
    wait(ticket);
    close_device_pages();
}

void Stream::run_kernel(const PreparedKernel& kernel) {
    const auto blocks =
        static_cast<int>(kernel.shape.grid.x * kernel.shape.grid.y * kernel.shape.grid.z);
    if (kernel.shape.cooperative) {
        const auto held = HeldMultiprocessors::for_all(blocks);
        begin_kernel(true);
        run_kernel_now(kernel, blocks);
    } else if (settings().crowded) {
        const int most = std::min(blocks, std::max(processors(), 2));
        const auto held = HeldMultiprocessors::for_some(most);
        begin_kernel();
        run_kernel_now(kernel, held.count() > 0 ? held.count() : most);
    } else {
        begin_kernel();
        run_kernel_now(kernel, 1);
    }
}

// Runs the kernel on as many threads as `workers`.
void Stream::run_kernel_now(const PreparedKernel& kernel, int workers) {
    std::optional<KernelRun> kept;
    {
        const Unseen bookkeeping;
        kept.emplace(kernel, settings());
        std::lock_guard lock(run_mutex_);
        run_ = &*kept;
    }
    KernelRun& run = *kept;
    if (run.settings.races)
        run.watch = watch_launch(run);
    if (run.settings.polls)
        count_load = [](const void* address) {
            if (kernel_thread.in_kernel)
                kernel_thread.executor->count_load(address);
        };
    DeviceAccess access;
    choose_turns(kernel.shape.cooperative);
    if (CUDA_ON_CPU_TSAN && run.blocks() > 1)
        run_on_new_threads(run);
    else if (workers > 1)
        block_threads().run(run, *executor_, static_cast<std::uint64_t>(workers));
    else
        executor_->run(run, 0, 1);
    if (has_short_turns_ && !kernel.shape.cooperative)
        since_cooperative_ += std::chrono::steady_clock::now() - run.started;
    {
        const Unseen bookkeeping;
        std::lock_guard lock(run_mutex_);
        run_ = nullptr;
    }
    if (run.settings.strict && !device_is_lost()) {
        const Unseen bookkeeping;
        const std::string damage = find_damaged_red_zone();
        if (!damage.empty())
            device_failed(cudaErrorIllegalAddress, run.name() + ": " + damage);
    }
    if (const auto observer = kernel_observer.load())
        observer({kernel.shape, run.meetings.load(), run.watch ? run.watch->use() : KernelUse()});
    if (run.settings.polls)
        run.note_polls();
    if (kernel.shape.cooperative)
        end_late(run.settings.late_ms);
}

// Cooperative kernels, which wait for others, take short turns. A change takes some microseconds,
// as long as several small kernels. So the usual turns come back after a millisecond of other
// kernels.
void Stream::choose_turns(bool is_cooperative) {
    if (is_cooperative)
        since_cooperative_ = {};
    const bool wanted = is_cooperative || (has_short_turns_ && since_cooperative_ < 1ms);
    if (wanted != has_short_turns_)
        take_short_turns(has_short_turns_ = wanted);
}

void Stream::check_time_limit() {
    const Unseen bookkeeping;
    std::lock_guard lock(run_mutex_);
    if (run_ == nullptr)
        return;
    const double limit = run_->settings.kernel_timeout_s;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - run_->started;
    if (limit > 0 && elapsed.count() > limit && !device_is_lost())
        device_failed(
            cudaErrorLaunchTimeout,
            run_->name() + ": still running after " +
                std::to_string(static_cast<int>(elapsed.count())) +
                " s, so it was ended. Does one of its loops never end? (One that waits for another "
                "block or rank must call __nanosleep, and have a limit of its own.)");
    if (device_is_lost())
        run_->interrupt();
}

void Stream::cooperative_kernel_begins(const PreparedKernel& kernel) {
    const Unseen bookkeeping;
    std::lock_guard lock(run_mutex_);
    cooperative_.push_back(&kernel);
}

void Stream::cooperative_kernel_ends() {
    const Unseen bookkeeping;
    std::lock_guard lock(run_mutex_);
    cooperative_.pop_front();
}

std::string Stream::unfinished_cooperative_kernel() {
    const Unseen bookkeeping;
    std::lock_guard lock(run_mutex_);
    return cooperative_.empty() ? "" : KernelRun(*cooperative_.front(), settings()).name();
}

}  // namespace cuda_on_cpu
