#pragma once
// Runs the blocks of a grid, one after the other, on one OS thread: the CUDA threads of a block are
// fibers.
//
// A fiber runs CUDA threads until one of them must wait (at a barrier, for its warp, in
// __nanosleep). Then another fiber takes over. A kernel that never waits needs one fiber for the
// whole block, and a block of one thread needs none: it is a plain call, which the compiler has
// vectorised.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda_on_cpu/kernel_api.hpp"
#include "fiber.hpp"
#include "kernel_run.hpp"
#include "watch.hpp"

namespace cuda_on_cpu {

inline constexpr std::size_t max_shared_bytes = 48 << 10;     // without asking, as on every GPU
inline constexpr std::size_t shared_bytes_optin = 227 << 10;  // at most, as on Hopper
inline constexpr unsigned int max_threads = 1024;
inline constexpr int warp_lanes = 32;

// The threads of a block that could run now, in order. A thread stands in it at most once, so its
// room is fixed: nothing is allocated while a kernel runs (on whose behalf? a sanitizer would ask).
class ReadyQueue {
  public:
    void reset(std::size_t threads) {
        ring_.resize(threads);
        spare_.resize(threads);
        first_ = count_ = 0;
    }
    bool empty() const { return count_ == 0; }
    int front() const { return ring_[first_]; }
    void push(int thread) { ring_[wrapped(first_ + count_++)] = thread; }
    int pop() {
        const int thread = ring_[first_];
        first_ = wrapped(first_ + 1);
        count_--;
        return thread;
    }
    // Shell's method. Parts of std::sort would be shared with kernels' files, which a sanitizer
    // watches: it would take the runtime's order of threads for something that the threads do.
    template <class Before>
    void sort(Before before) {
        for (std::size_t i = 0; i < count_; i++)
            spare_[i] = ring_[wrapped(first_ + i)];
        ring_.swap(spare_);
        first_ = 0;
        for (std::size_t gap = count_ / 2; gap > 0; gap /= 2)
            for (std::size_t i = gap; i < count_; i++) {
                const int thread = ring_[i];
                std::size_t to = i;
                for (; to >= gap && before(thread, ring_[to - gap]); to -= gap)
                    ring_[to] = ring_[to - gap];
                ring_[to] = thread;
            }
    }

  private:
    std::size_t wrapped(std::size_t at) const { return at < ring_.size() ? at : at - ring_.size(); }

    std::vector<int> ring_;
    std::vector<int> spare_;  // of the same size, for sort
    std::size_t first_ = 0;
    std::size_t count_ = 0;
};

struct BadTouch {
    const void* address;
    bool is_write;
};

class BlockExecutor {
  public:
    BlockExecutor();
    ~BlockExecutor();
    BlockExecutor(const BlockExecutor&) = delete;
    BlockExecutor& operator=(const BlockExecutor&) = delete;

    // Runs the blocks that stand at first, first + step, ... in the order of the run. Ends early if
    // the run is cancelled.
    void run(KernelRun& run, std::uint64_t first, std::uint64_t step);

    // Called by the running CUDA thread (kernel_api.hpp).
    [[gnu::always_inline]] void barrier(Where where);
    std::uint64_t warp_exchange(WarpOperation operation, unsigned int mask, std::uint64_t value,
                                int argument, int width, Where where);
    void yield(unsigned int nanoseconds);
    void count_load(const void* address);
    void* dynamic_shared_memory() const { return dynamic_shared_; }
    // The running CUDA thread did what no kernel may do: the device fails. The caller then leaves
    // the kernel (by a jump over the kernel's frames, so nothing that owns memory may be alive in
    // its own).
    void fault(cudaError_t code, const std::string& what);
    [[noreturn]] void leave_kernel();
    // For the signal handler, which may do little: the failure is named when the block has ended.
    [[noreturn]] void leave_kernel(BadTouch touch);
    const KernelRun& run() const { return *run_; }

    // For whoever watches it: the block that runs, which of its threads, and where that keeps what
    // is its own, and what it shares with its block beside the thread-local storage.
    const uint3& block_index() const { return block_index_; }
    int current_thread() const { return current_; }
    std::size_t threads() const { return threads_.size(); }
    std::string name_of_thread(int thread) const { return "thread " + thread_name(thread); }
    std::span<const std::byte> stack_bytes() { return stack().bytes(); }
    std::span<const std::byte> dynamic_shared_bytes() const;

  private:
    struct Thread {
        Fiber* fiber = nullptr;  // nullptr: not started
        uint3 index{};
        bool exited = false;
        std::uint64_t value = 0;  // what it brought to a warp operation, then what it takes away
        int argument = 0;
    };
    struct WarpGroup {  // lanes that wait for each other
        int warp;
        unsigned int mask;
        unsigned int arrived;
        WarpOperation operation;
        int width;
        Where where;
    };

    void prepare_launch();
    bool has_turn(std::uint64_t position);
    void end_turn();
    void prepare_block(std::uint64_t block);
    void run_single_thread();
    void call_kernel();
    void run_fibers();
    static void fiber_main(Fiber& fiber);
    void run_thread(Fiber& fiber);
    void thread_exited();
    [[gnu::always_inline]] void run_next(Fiber& from);  // inline: see Fiber::switch_between
    void run_until_given_a_thread(Fiber& fiber);
    void make_ready(std::span<const int> threads);
    void shuffle_ready();
    void check_barrier(Where where);
    void check_warp_call(WarpOperation operation, unsigned int mask, int width, Where where);
    WarpGroup& join_group(WarpOperation operation, unsigned int mask, int width, Where where);
    static std::string text_of_call(const WarpGroup& call, const WarpGroup& other);
    Thread& first_lane(const WarpGroup& group);
    void complete(const WarpGroup& group);
    void back_off();
    Fiber& take_fiber();
    void start_on(Fiber& fiber, int thread);
    void abandon_block();
    void check_cancelled();
    void name_bad_touch(BadTouch touch);
    Fiber& stack();
    std::string thread_name(int thread) const;
    std::string who() const;
    void report_deadlock();

    KernelRun* run_ = nullptr;
    uint3 block_index_{};
    std::vector<Thread> threads_;
    int live_ = 0;
    int current_ = 0;
    bool abandoned_ = false;
    std::optional<BadTouch> bad_touch_;

    ReadyQueue ready_;
    std::vector<int> at_barrier_;
    Where barrier_where_;
    std::vector<WarpGroup> warp_groups_;
    int yields_in_a_row_ = 0;
    int sleeps_in_a_row_ = 0;
    int host_loads_ = 0;  // of this block
    std::chrono::steady_clock::time_point last_yield_;
    std::chrono::steady_clock::time_point core_is_taken_until_;  // by a thread that computes
    std::uint64_t random_ = 0;
    // Where ThreadSanitizer is told of the order between two blocks that share their shared memory.
    char end_of_blocks_[2];
    char* end_of_block_ = &end_of_blocks_[0];
    char* end_of_last_block_ = &end_of_blocks_[1];

    std::unique_ptr<BlockWatch> watch_;  // of the block that runs; nullptr: nobody watches

    Fiber main_;
    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::vector<Fiber*> idle_;

    std::byte* shared_region_ = nullptr;  // shared_bytes_optin and a closed page behind it
    void* dynamic_shared_ = nullptr;
};

// The kernel thread that this OS thread runs now, for the signal handlers.
struct KernelThread {
    BlockExecutor* executor = nullptr;
    Fiber* fiber = nullptr;           // nullptr for a block of one thread
    void** fault_exit = nullptr;      // where __builtin_longjmp leaves the kernel to
    volatile bool in_kernel = false;  // in the reader's code, not in the runtime's
    BlockWatch* watch = nullptr;      // of the block that runs; nullptr: nobody watches
};
extern constinit thread_local KernelThread kernel_thread;

// Returns this OS thread's thread-local storage of the program, which holds its shared memory.
// Libraries have theirs elsewhere.
std::span<std::byte> program_thread_storage();

// Fills this OS thread's shared memory (all thread-local storage of the program, sparing the
// runtime's own) with NaN.
void poison_shared_memory();

}  // namespace cuda_on_cpu
