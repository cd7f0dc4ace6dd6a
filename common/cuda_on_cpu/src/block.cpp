#include "block.hpp"

#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <numeric>
#include <utility>

#include "errors.hpp"
#include "kernel_name.hpp"
#include "memory.hpp"
#include "pause.hpp"
#include "protection.hpp"
#include "turns.hpp"

#if CUDA_ON_CPU_ASAN
#include <sanitizer/asan_interface.h>
#endif

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim{};
constinit thread_local dim3 gridDim{};

namespace cuda_on_cpu {

constinit thread_local KernelThread kernel_thread{};

namespace {

// ThreadSanitizer keeps one history per fiber: only with a fiber of its own is a CUDA thread
// unordered with its neighbours.
constexpr bool one_fiber_per_thread = CUDA_ON_CPU_TSAN;
constexpr std::uint64_t absent_lane = ~0ull;  // what a lane brings that is not there

std::size_t page_size() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

std::string index_text(const uint3& v) {
    return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
}
using cuda_on_cpu::to_string;

uint3 position(std::uint64_t linear, const dim3& shape) {
    return {static_cast<unsigned int>(linear % shape.x),
            static_cast<unsigned int>(linear / shape.x % shape.y),
            static_cast<unsigned int>(linear / shape.x / shape.y)};
}

bool same_place(const Where& a, const Where& b) {
    return a.line() == b.line() && a.column() == b.column() &&
           (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

// Returns "a.cu:10", and the column if `other` is another place in this line.
std::string text_of_place(const Where& where, const Where& other) {
    const bool is_same_line =
        where.line() == other.line() && std::strcmp(where.file_name(), other.file_name()) == 0;
    return to_string(where) + (is_same_line && where.column() != other.column()
                                   ? ", column " + std::to_string(where.column())
                                   : "");
}

const char* name_of(WarpOperation operation) {
    switch (operation) {
        case WarpOperation::sync:
            return "__syncwarp";
        case WarpOperation::ballot:
            return "__ballot_sync";
        case WarpOperation::shuffle:
            return "__shfl_sync";
        case WarpOperation::shuffle_up:
            return "__shfl_up_sync";
        case WarpOperation::shuffle_down:
            return "__shfl_down_sync";
        case WarpOperation::shuffle_xor:
            return "__shfl_xor_sync";
    }
    return "";
}

// Which lane's value does `lane` get? Its own, where CUDA says that the value does not change.
int source_lane(WarpOperation operation, int lane, int argument, int width) {
    const int first = lane / width * width;
    int source = lane;
    switch (operation) {
        case WarpOperation::shuffle:
            return first + (argument & (width - 1));
        case WarpOperation::shuffle_up:
            source = lane - argument;
            return source < first ? lane : source;
        case WarpOperation::shuffle_down:
            source = lane + argument;
            return source >= first + width ? lane : source;
        case WarpOperation::shuffle_xor:
            source = lane ^ argument;
            return source >= first + width ? lane : source;
        default:
            return lane;
    }
}

// xorshift64*: all that shuffling a few threads needs.
std::uint64_t next_random(std::uint64_t& state) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1Dull;
}

template <class Items>
void shuffle(Items& items, std::uint64_t& random) {
    for (std::size_t i = items.size(); i > 1; i--)
        std::swap(items[i - 1], items[next_random(random) % i]);
}

constexpr const char* threw_mark = "threw an exception, which no GPU can: ";

// The shared memory of a new block: whoever reads it before it is written gets NaN.
__attribute__((no_sanitize("address", "thread"))) void fill_with_nan(std::byte* bytes,
                                                                     std::size_t count) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    volatile std::byte* unseen = bytes;  // of memset the sanitizer would know
    for (std::size_t i = 0; i < count; i++)
        unseen[i] = std::byte{0xff};
#else
    std::memset(bytes, 0xff, count);
#endif
}

}  // namespace

std::span<std::byte> program_thread_storage() {
    std::span<std::byte> result;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            for (int i = 0; i < info->dlpi_phnum; i++)
                if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data != nullptr)
                    *static_cast<std::span<std::byte>*>(out) = {
                        static_cast<std::byte*>(info->dlpi_tls_data), info->dlpi_phdr[i].p_memsz};
            return 1;  // the program comes first, and only it has kernels
        },
        &result);
    return result;
}

__attribute__((no_sanitize("address", "thread"))) void poison_shared_memory() {
    const std::span<std::byte> storage = program_thread_storage();
    const KernelThread saved = kernel_thread;
    fill_with_nan(storage.data(), storage.size());
    std::memcpy(static_cast<void*>(&kernel_thread), &saved, sizeof saved);
}

// ---- Blocks

BlockExecutor::BlockExecutor() {
    void* region = mmap(nullptr, shared_bytes_optin + page_size() * 2, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED)
        throw std::bad_alloc();
    shared_region_ = static_cast<std::byte*>(region);
    mprotect(shared_region_, shared_bytes_optin / page_size() * page_size() + page_size(),
             PROT_READ | PROT_WRITE);
}

BlockExecutor::~BlockExecutor() {
    munmap(shared_region_, shared_bytes_optin + page_size() * 2);
}

void BlockExecutor::run(KernelRun& run, std::uint64_t first, std::uint64_t step) {
    run_ = &run;
    prepare_launch();
    const std::uint64_t blocks = run.blocks();
    std::vector<std::uint64_t> order;
    if (run.settings.order == Order::random && blocks <= 1u << 20) {
        order.resize(blocks);
        std::iota(order.begin(), order.end(), 0);
        shuffle(order, random_);
    }
    run.enter(pthread_self());
    for (std::uint64_t i = first; i < blocks && has_turn(i); i += step) {
        prepare_block(!order.empty()                          ? order[i]
                      : run.settings.order == Order::reversed ? blocks - 1 - i
                                                              : i);
        if (threads_.size() == 1 && !one_fiber_per_thread)
            run_single_thread();
        else
            run_fibers();
        watch_.reset();
        kernel_thread.watch = nullptr;
        if (bad_touch_)
            name_bad_touch(*std::exchange(bad_touch_, std::nullopt));
        end_turn();
    }
    run.leave(pthread_self());
    kernel_thread = {};
}

void BlockExecutor::prepare_launch() {
    const LaunchShape& shape = run_->kernel.shape;
    random_ = run_->settings.seed * 0x9E3779B97F4A7C15ull + 1;
    const std::size_t end = shared_bytes_optin / page_size() * page_size() + page_size();
    dynamic_shared_ = shared_region_ + end - (shape.shared_bytes + 15) / 16 * 16;
    threads_.resize(static_cast<std::size_t>(shape.block.x) * shape.block.y * shape.block.z);
    for (std::size_t i = 0; i < threads_.size(); i++)
        threads_[i].index = position(i, shape.block);
    at_barrier_.reserve(threads_.size());
    warp_groups_.reserve(
        threads_.size());  // at most one a thread: the masks of a warp are disjoint
    if (threads_.size() > 1 || one_fiber_per_thread)
        while (fibers_.size() < (one_fiber_per_thread ? threads_.size() : 1)) {
            fibers_.push_back(std::make_unique<Fiber>(&BlockExecutor::fiber_main, this));
            idle_.push_back(fibers_.back().get());
        }
    order_release(this);  // what came before the launch comes before every thread of it
}

// Returns when the block at `position` may run: false if the run is cancelled. Under
// ThreadSanitizer blocks have OS threads of their own (run_on_new_threads), and yet take turns.
bool BlockExecutor::has_turn(std::uint64_t position) {
    const bool takes_turns = one_fiber_per_thread && !run_->kernel.shape.cooperative;
    const timespec pause{0, 20'000};
    while (takes_turns && !run_->is_cancelled() &&
           run_->finished_blocks.load(std::memory_order_acquire) < position)
        nanosleep(&pause, nullptr);
    return !run_->is_cancelled();
}

void BlockExecutor::end_turn() {
    if (one_fiber_per_thread)
        run_->finished_blocks.fetch_add(1, std::memory_order_release);
}

void BlockExecutor::prepare_block(std::uint64_t block) {
    const LaunchShape& shape = run_->kernel.shape;
    if (run_->settings.strict) {
        poison_shared_memory();
        fill_with_nan(static_cast<std::byte*>(dynamic_shared_), shape.shared_bytes);
    }
    kernel_thread.executor = this;
    std::swap(end_of_block_, end_of_last_block_);
    block_index_ = position(block, shape.grid);
    if (run_->watch)
        watch_ = run_->watch->block_begins(block, *this);
    kernel_thread.watch = watch_.get();
    blockIdx = block_index_;
    blockDim = shape.block;
    gridDim = shape.grid;
    threadIdx = {};
    current_ = 0;
    yields_in_a_row_ = host_loads_ = 0;
    live_ = static_cast<int>(threads_.size());
    for (Thread& thread : threads_) {
        thread.fiber = nullptr;
        thread.exited = false;
    }
}

__attribute__((noinline)) void BlockExecutor::run_single_thread() {
    void* fault_exit[5];
    kernel_thread.fault_exit = fault_exit;
    if (__builtin_setjmp(fault_exit) != 0)
        return;
    call_kernel();
}

// The reader's code, as one CUDA thread.
void BlockExecutor::call_kernel() {
    try {
        kernel_thread.in_kernel = true;
        run_->kernel.call();
        kernel_thread.in_kernel = false;
    } catch (const std::exception& exception) {
        fault(cudaErrorLaunchFailure, std::string(threw_mark) + exception.what());
    } catch (...) {
        fault(cudaErrorLaunchFailure, std::string(threw_mark) + "of a type of its own");
    }
}

void BlockExecutor::run_fibers() {
    at_barrier_.clear();
    warp_groups_.clear();
    ready_.reset(threads_.size());
    std::vector<int> all(threads_.size());
    std::iota(all.begin(), all.end(), 0);
    if (run_->settings.order == Order::reversed)
        std::reverse(all.begin(), all.end());
    make_ready(all);

    run_next(main_);
    order_acquire(end_of_block_);  // what the threads did comes before what follows the launch

    if (abandoned_) {
        for (const auto& fiber : fibers_)
            fiber->restart();
        abandoned_ = false;
    }
    idle_.clear();
    for (const auto& fiber : fibers_)
        idle_.push_back(fiber.get());
}

// ---- Fibers

__attribute__((noinline)) void BlockExecutor::fiber_main(Fiber& fiber) {
    if (__builtin_setjmp(fiber.fault_exit) != 0)
        kernel_thread.executor->abandon_block();
    auto* executor = static_cast<BlockExecutor*>(fiber.owner);
    for (;;) {
        executor->run_thread(fiber);
        executor->run_until_given_a_thread(fiber);
    }
}

void BlockExecutor::run_thread(Fiber&) {
    order_acquire(this);
    order_acquire(end_of_last_block_);  // it had the same shared memory
    call_kernel();
}

void BlockExecutor::run_until_given_a_thread(Fiber& fiber) {
    thread_exited();
    check_cancelled();
    if (!one_fiber_per_thread) {
        if (!ready_.empty() && threads_[ready_.front()].fiber == nullptr) {
            start_on(fiber, ready_.pop());
            return;
        }
        idle_.push_back(&fiber);
    }
    run_next(fiber);
}

void BlockExecutor::thread_exited() {
    threads_[current_].exited = true;
    live_--;
    yields_in_a_row_ = 0;
    if (!at_barrier_.empty())
        fault(cudaErrorLaunchFailure,
              "returned while thread " + thread_name(at_barrier_[0]) +
                  " waits at the __syncthreads() of " + to_string(barrier_where_) +
                  ": every thread of a block must reach it; guard the work, not the barrier");
    for (const WarpGroup& group : warp_groups_)
        if (group.warp == current_ / warp_lanes &&
            (group.mask >> (current_ % warp_lanes) & 1u) != 0)
            fault(cudaErrorLaunchFailure,
                  std::string("returned while lanes of its warp wait for it at the ") +
                      name_of(group.operation) + " of " + to_string(group.where));
}

// Goes on with the next thread that can run. Returns when `from` is switched to again.
inline void BlockExecutor::run_next(Fiber& from) {
    order_release(end_of_block_);  // wherever it ends early, its launch comes before what follows
    if (ready_.empty()) {
        if (live_ > 0) {
            report_deadlock();
            leave_kernel();
        }
        Fiber::switch_between(from, main_);
        return;
    }
    const int next = ready_.pop();
    if (threads_[next].fiber == nullptr)
        start_on(take_fiber(), next);
    Fiber& fiber = *threads_[next].fiber;
    current_ = next;
    threadIdx = threads_[next].index;
    kernel_thread.fiber = &fiber;
    kernel_thread.fault_exit = fiber.fault_exit;
    if (&fiber != &from)
        Fiber::switch_between(from, fiber);
}

void BlockExecutor::start_on(Fiber& fiber, int thread) {
    fiber.thread = thread;
    threads_[thread].fiber = &fiber;
    current_ = thread;
    threadIdx = threads_[thread].index;
}

Fiber& BlockExecutor::take_fiber() {
    if (idle_.empty()) {
        fibers_.push_back(std::make_unique<Fiber>(&BlockExecutor::fiber_main, this));
        idle_.push_back(fibers_.back().get());
    }
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return *fiber;
}

void BlockExecutor::abandon_block() {
    abandoned_ = true;
    order_release(end_of_block_);
    Fiber::switch_between(*kernel_thread.fiber, main_);
    __builtin_unreachable();
}

// ---- What a thread calls

inline void BlockExecutor::barrier(Where where) {
    kernel_thread.in_kernel = false;
    check_cancelled();
    if (threads_.size() > 1) {
        check_barrier(where);
        barrier_where_ = where;
        at_barrier_.push_back(current_);
        order_release(&at_barrier_);
        if (at_barrier_.size() == threads_.size()) {
            order_acquire(&at_barrier_);
            order_release(&barrier_where_);
            if (watch_)
                watch_->block_meets();
            make_ready(at_barrier_);
            at_barrier_.clear();
        }
        run_next(*kernel_thread.fiber);
        order_acquire(&barrier_where_);
    }
    check_cancelled();
    kernel_thread.in_kernel = true;
}

void BlockExecutor::check_barrier(Where where) {
    if (live_ < static_cast<int>(threads_.size())) {
        const auto gone = std::find_if(threads_.begin(), threads_.end(),
                                       [](const Thread& thread) { return thread.exited; });
        fault(cudaErrorLaunchFailure,
              "waits at the __syncthreads() of " + to_string(where) + ", but thread " +
                  thread_name(static_cast<int>(gone - threads_.begin())) +
                  " returned before it: every thread of a block must reach it; guard the work, "
                  "not the barrier");
    } else if (!at_barrier_.empty() && !same_place(where, barrier_where_)) {
        fault(cudaErrorLaunchFailure, "waits at the __syncthreads() of " +
                                          text_of_place(where, barrier_where_) + ", but thread " +
                                          thread_name(at_barrier_[0]) + " waits at that of " +
                                          text_of_place(barrier_where_, where) +
                                          ": all threads of a block must meet at the same one");
    }
    check_cancelled();  // by one of these faults
    if (at_barrier_.empty())
        run_->meetings.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t BlockExecutor::warp_exchange(WarpOperation operation, unsigned int mask,
                                           std::uint64_t value, int argument, int width,
                                           Where where) {
    kernel_thread.in_kernel = false;
    check_cancelled();
    const int lanes = std::min(
        warp_lanes, static_cast<int>(threads_.size()) - current_ / warp_lanes * warp_lanes);
    if (lanes < warp_lanes)
        mask &= (1u << lanes) - 1;  // a block's last warp may be short
    check_warp_call(operation, mask, width, where);
    if (threads_.size() == 1) {  // alone, and perhaps a plain call: nobody to wait for
        kernel_thread.in_kernel = true;
        return source_lane(operation, 0, argument, width) == 0 ? value : absent_lane;
    }
    Thread& self = threads_[static_cast<std::size_t>(current_)];
    self.value = value;
    self.argument = argument;
    WarpGroup& group = join_group(operation, mask, width, where);
    order_release(&first_lane(group).argument);
    if (group.arrived == group.mask) {
        complete(group);
        group = warp_groups_.back();
        warp_groups_.pop_back();
    }
    run_next(*kernel_thread.fiber);
    order_acquire(&self.value);
    check_cancelled();
    kernel_thread.in_kernel = true;
    return self.value;
}

// Returns "__shfl_sync of a.cu:10", and whatever tells the call from `other`.
std::string BlockExecutor::text_of_call(const WarpGroup& call, const WarpGroup& other) {
    std::string text =
        std::string(name_of(call.operation)) + " of " + text_of_place(call.where, other.where);
    if (call.mask != other.mask) {
        char mask[32];
        std::snprintf(mask, sizeof mask, " with mask 0x%08x", call.mask);
        text += mask;
    }
    if (call.width != other.width)
        text += " with width " + std::to_string(call.width);
    return text;
}

void BlockExecutor::check_warp_call(WarpOperation operation, unsigned int mask, int width,
                                    Where where) {
    const int warp = current_ / warp_lanes;
    const int lane = current_ % warp_lanes;
    const auto at = [&] { return std::string(name_of(operation)) + " of " + to_string(where); };
    if ((mask >> lane & 1u) == 0)
        fault(cudaErrorLaunchFailure, "calls the " + at() +
                                          " with a mask that does not name its own lane " +
                                          std::to_string(lane));
    if (width < 1 || width > warp_lanes || (width & (width - 1)) != 0)
        fault(cudaErrorLaunchFailure, "calls the " + at() + " with width " + std::to_string(width) +
                                          "; it must be 1, 2, 4, 8, 16 or 32");
    const bool some_exited = live_ < static_cast<int>(threads_.size());
    for (int other = 0; some_exited && other < warp_lanes; other++)
        if ((mask >> other & 1u) != 0 && threads_[warp * warp_lanes + other].exited)
            fault(cudaErrorLaunchFailure, "waits at the " + at() + ", but thread " +
                                              thread_name(warp * warp_lanes + other) +
                                              ", which its mask names, has returned");
    check_cancelled();  // by one of these faults
}

// Adds the running thread to those of its warp that wait with the same mask.
BlockExecutor::WarpGroup& BlockExecutor::join_group(WarpOperation operation, unsigned int mask,
                                                    int width, Where where) {
    const int warp = current_ / warp_lanes;
    auto group = std::find_if(warp_groups_.begin(), warp_groups_.end(), [&](const WarpGroup& g) {
        return g.warp == warp && (g.mask & mask) != 0;
    });
    if (group == warp_groups_.end()) {
        warp_groups_.push_back({warp, mask, 0, operation, width, where});
        group = std::prev(warp_groups_.end());
    } else if (group->mask != mask || group->operation != operation || group->width != width ||
               !same_place(group->where, where)) {
        const WarpGroup mine{warp, mask, 0, operation, width, where};
        fault(cudaErrorLaunchFailure, "waits at the " + text_of_call(mine, *group) +
                                          ", but lanes of its warp wait at the " +
                                          text_of_call(*group, mine) +
                                          ": the lanes of a mask must meet at the same call");
        check_cancelled();
    }
    group->arrived |= 1u << current_ % warp_lanes;
    return *group;
}

// All lanes have come: each gets its result, and may go on.
void BlockExecutor::complete(const WarpGroup& group) {
    run_->meetings.fetch_add(1, std::memory_order_relaxed);
    if (watch_ && group.operation == WarpOperation::sync)
        watch_->lanes_meet(group.warp, group.mask);
    std::uint64_t brought[warp_lanes];
    unsigned int votes = 0;
    Thread* lanes = &threads_[static_cast<std::size_t>(group.warp) * warp_lanes];
    for (int lane = 0; lane < warp_lanes; lane++) {
        const bool is_here = (group.mask >> lane & 1u) != 0;
        brought[lane] = is_here ? lanes[lane].value : absent_lane;
        votes |= static_cast<unsigned int>(is_here && (brought[lane] & 1u) != 0) << lane;
    }
    order_acquire(&first_lane(group).argument);
    int released[warp_lanes];
    std::size_t count = 0;
    for (int i = 0; i < warp_lanes; i++) {
        const int lane = run_->settings.order == Order::reversed ? warp_lanes - 1 - i : i;
        if ((group.mask >> lane & 1u) == 0)
            continue;
        lanes[lane].value =
            group.operation == WarpOperation::ballot
                ? votes
                : brought[source_lane(group.operation, lane, lanes[lane].argument, group.width)];
        released[count++] = group.warp * warp_lanes + lane;
        order_release(&lanes[lane].value);
    }
    make_ready({released, count});
}

BlockExecutor::Thread& BlockExecutor::first_lane(const WarpGroup& group) {
    return threads_[static_cast<std::size_t>(group.warp * warp_lanes +
                                             std::countr_zero(group.mask))];
}

// Puts `threads`, which stand in the order of the run, behind those that may run already, or all of
// them in a random order.
void BlockExecutor::make_ready(std::span<const int> threads) {
    yields_in_a_row_ = 0;
    for (int thread : threads)
        ready_.push(thread);
    if (run_->settings.order == Order::random)
        shuffle_ready();
}

// Puts all threads that may run in a random order, so that one that leaves a meeting may run ahead
// of others that have not come to it. A coin decides whether the lanes of a warp stay together: if
// so, one warp gets far ahead of another one, and if not, one lane.
void BlockExecutor::shuffle_ready() {
    const std::uint64_t salt = next_random(random_);
    const bool by_warps = (next_random(random_) >> 63) != 0;
    const auto place = [&](int number) {
        std::uint64_t state = salt + static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15ull;
        return next_random(state);
    };
    ready_.sort([&](int a, int b) {
        if (by_warps && a / warp_lanes != b / warp_lanes)
            return place(~(a / warp_lanes)) < place(~(b / warp_lanes));
        return place(a) < place(b);
    });
}

void BlockExecutor::yield(unsigned int nanoseconds) {
    kernel_thread.in_kernel = false;
    check_cancelled();
    using Clock = std::chrono::steady_clock;
    if (Clock::now() - last_yield_ > std::chrono::microseconds(1))
        yields_in_a_row_ = 0;  // the kernel has worked since: this is a new wait
    yields_in_a_row_++;
    const bool alone = threads_.size() == 1 || ready_.empty();
    if (alone || yields_in_a_row_ > live_)
        back_off();
    if (alone && nanoseconds >= 50'000) {
        std::uint64_t duration = std::min(nanoseconds, 1'000'000u);
        if (run_->settings.order == Order::random)  // all that a GPU promises (PTX ISA, nanosleep)
            duration = next_random(random_) % (2 * duration);
        const timespec pause{0, static_cast<long>(duration)};
        nanosleep(&pause, nullptr);
    }
    if (!alone) {
        ready_.push(current_);
        run_next(*kernel_thread.fiber);
    }
    check_cancelled();
    last_yield_ = Clock::now();
    kernel_thread.in_kernel = true;
}

void BlockExecutor::count_load(const void* address) {
    constexpr int few = 10;
    kernel_thread.in_kernel = false;
    const std::optional<Allocation> found = find_allocation(address);
    if (found && found->kind == MemoryKind::pinned) {
        run_->host_loads++;
        run_->polling_blocks += ++host_loads_ == few;
    }
    kernel_thread.in_kernel = true;
}

// The kernel waits for somebody else, who may need this core: spin for a microsecond, which is
// longer than news takes from another core, then let others run. One of them that computes keeps
// the core for milliseconds when it is given to it, but whoever wakes from a sleep may have it back
// at once.
void BlockExecutor::back_off() {
    using Clock = std::chrono::steady_clock;
    constexpr int spins = 12, yields = 128;
    const int rounds = yields_in_a_row_ / std::max(1, live_);
    if (rounds < spins) {
        pause_briefly();
        sleeps_in_a_row_ = 0;
    } else if (rounds < spins + yields && !ClaimedCore::is_here() &&
               Clock::now() > core_is_taken_until_) {
        const Clock::time_point before = Clock::now();
        sched_yield();
        if (Clock::now() - before > std::chrono::milliseconds(1))
            core_is_taken_until_ = Clock::now() + std::chrono::milliseconds(30);
    } else {
        // The longer it has waited, the less it matters to be a little late.
        const timespec pause{0, 20'000L << std::min(sleeps_in_a_row_++ / 4, 4)};
        nanosleep(&pause, nullptr);
    }
}

// ---- Failing

std::string BlockExecutor::thread_name(int thread) const {
    return index_text(threads_[static_cast<std::size_t>(thread)].index);
}

std::string BlockExecutor::who() const {
    return run_->name() + ": thread " + thread_name(current_) + " of block " +
           index_text(block_index_) + " ";
}

void BlockExecutor::fault(cudaError_t code, const std::string& what) {
    kernel_thread.in_kernel = false;
    device_failed(code, who() + what);
}

std::span<const std::byte> BlockExecutor::dynamic_shared_bytes() const {
    return {static_cast<const std::byte*>(dynamic_shared_), run_->kernel.shape.shared_bytes};
}

// The stack that the running CUDA thread uses.
Fiber& BlockExecutor::stack() {
    return kernel_thread.fiber != nullptr ? *kernel_thread.fiber : main_;
}

void BlockExecutor::name_bad_touch(BadTouch touch) {
    const auto* byte = static_cast<const std::byte*>(touch.address);
    const std::byte* shared_end =
        shared_region_ + shared_bytes_optin / page_size() * page_size() + page_size();
    const std::string verb = touch.is_write ? "wrote " : "read ";
    if (stack().is_overflow(touch.address))
        fault(cudaErrorHardwareStackError,
              "needs more than " + std::to_string(stack().stack_bytes() >> 10) +
                  " KiB of stack: keep large arrays in shared or device memory");
    else if (byte >= shared_end && byte < shared_end + page_size())
        fault(cudaErrorIllegalAddress, verb + "past the end of the " +
                                           std::to_string(run_->kernel.shape.shared_bytes) +
                                           " bytes of dynamic shared memory");
    else
        fault(cudaErrorIllegalAddress, verb + describe_address(touch.address));
}

__attribute__((noinline)) void BlockExecutor::leave_kernel() {
    DeviceAccess::restore_after_signal();
    kernel_thread.in_kernel = false;
    stack().forget_frames();
#if CUDA_ON_CPU_ASAN
    __asan_handle_no_return();  // for a signal handler's own stack
#endif
    __builtin_longjmp(kernel_thread.fault_exit, 1);
}

void BlockExecutor::leave_kernel(BadTouch touch) {
    bad_touch_ = touch;
    leave_kernel();
}

void BlockExecutor::check_cancelled() {
    if (run_->is_cancelled())
        leave_kernel();
}

void BlockExecutor::report_deadlock() {
    std::string waiting;
    if (!at_barrier_.empty())
        waiting = "thread " + thread_name(at_barrier_[0]) + " waits at the __syncthreads() of " +
                  to_string(barrier_where_);
    for (const WarpGroup& group : warp_groups_)
        waiting += (waiting.empty() ? "" : ", ") + std::string("lanes of warp ") +
                   std::to_string(group.warp) + " wait at the " + name_of(group.operation) +
                   " of " + to_string(group.where);
    device_failed(cudaErrorLaunchFailure, run_->name() + ": no thread of block " +
                                              index_text(block_index_) + " can go on: " + waiting +
                                              ", and nobody is left to come");
}

// ---- kernel_api.hpp

namespace {
BlockExecutor& executor() {
    return *kernel_thread.executor;
}
}  // namespace

void block_barrier(Where where) {
    executor().barrier(where);
}
std::uint64_t warp_exchange(WarpOperation operation, unsigned int mask, std::uint64_t value,
                            int argument, int width, Where where) {
    return executor().warp_exchange(operation, mask, value, argument, width, where);
}
void trap(Where where) {
    executor().fault(cudaErrorLaunchFailure, "called __trap() at " + to_string(where));
    executor().leave_kernel();
}
void* dynamic_shared_memory() {
    return executor().dynamic_shared_memory();
}

}  // namespace cuda_on_cpu
