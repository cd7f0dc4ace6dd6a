#include "09_all_reduce/libraries/host_staging.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "06_messages/peers.hpp"
#include "06_messages/support/copy.cuh"
#include "06_messages/support/host_flag.hpp"
#include "06_messages/support/shared_device.hpp"
#include "06_messages/wait.cuh"
#include "common/gpu/thread_name.hpp"
#include "common/report/bench.hpp"

namespace ddp {
namespace {

constexpr std::size_t staging_slot_bytes = 2 << 20;

// Two slices are under way, each with a slot for what goes in and one for what comes out.
struct Slots {
    std::byte* begin;

    __host__ __device__ std::byte* input(std::uint64_t slice) const {
        return begin + slice % 2 * staging_slot_bytes;
    }
    __host__ __device__ std::byte* output(std::uint64_t slice) const {
        return begin + (2 + slice % 2) * staging_slot_bytes;
    }
};

// The kernel's side of a job; passed by value.
struct Relay {
    StagingFlags* flags;
    std::uint64_t* done;  // in device memory: flags->done, as block 0 has seen it last
    Slots slots;
    const std::byte* input;
    std::size_t input_arrays;
    std::byte* output;
    std::size_t output_arrays;
    Slices slices;
    std::uint64_t first_slice;
};

// All threads bring slice `i`. A block that comes here has seen the last but one to be done: its
// input slot has been read.
__device__ void stage(const Relay& relay, std::size_t i) {
    const std::size_t bytes = relay.slices.size(i);
    std::byte* slot = relay.slots.input(relay.first_slice + i);
    for (std::size_t p = 0; p < relay.input_arrays; p++)
        copy_bytes(slot + p * bytes,
                   relay.input + p * relay.slices.array_bytes + i * relay.slices.slice_bytes,
                   bytes);
    __syncthreads();
    if (threadIdx.x == 0)
        store_release(relay.flags->staged[blockIdx.x].value, relay.first_slice + i + 1);
}

// All threads take the result of slice `i`. The thread writes to the slot again when all blocks
// have staged the next slice but one, which they do after this.
__device__ void fetch(const Relay& relay, std::size_t i) {
    const std::size_t bytes = relay.slices.size(i);
    const std::byte* slot = relay.slots.output(relay.first_slice + i);
    for (std::size_t p = 0; p < relay.output_arrays; p++)
        copy_bytes(relay.output + p * relay.slices.array_bytes + i * relay.slices.slice_bytes,
                   slot + p * bytes, bytes);
}

constexpr std::uint64_t stopped = ~std::uint64_t{0};

// Waits until the host has done `slices`; one thread of each block calls it. Only block 0 looks at
// the host's memory, now and then, and passes on what it sees: on an H100, 64 blocks that polled
// there made a product of matrices 30 times slower. Returns false if the run fails. (The wait has
// no limit of its own: those of the work that it waits for have.)
__device__ bool wait_for_done(const Relay& relay, std::uint64_t slices) {
    constexpr unsigned int look_ns = kernels_run_on_cpu ? 100 : 20'000;
    while (load_relaxed(*relay.done) < slices) {
        if (blockIdx.x > 0) {
            __nanosleep(100);
            continue;
        }
        if (load_relaxed(relay.flags->stop.value) != 0)
            store_release(*relay.done, stopped);
        else if (load_acquire(relay.flags->done.value) >= slices)
            store_release(*relay.done, slices);
        else
            __nanosleep(look_ns);
    }
    return load_acquire(*relay.done) != stopped;
}

__global__ void relay_kernel(const __grid_constant__ Relay relay) {
    __shared__ bool may_go_on;
    const std::size_t count = relay.slices.count();
    stage(relay, 0);
    for (std::size_t i = 0; i < count; i++) {
        if (i + 1 < count)
            stage(relay, i + 1);
        if (threadIdx.x == 0)
            may_go_on = wait_for_done(relay, relay.first_slice + i + 1);
        __syncthreads();
        if (!may_go_on)
            return;
        fetch(relay, i);
        __syncthreads();
    }
}

// Cuts a job into slices that fit into a slot. Sizes are multiples of 128 bytes, so that elements
// stay whole.
Slices cut(const StagingJob& job) {
    const std::size_t arrays = std::max<std::size_t>({job.input_arrays, job.output_arrays, 1});
    constexpr std::size_t unit = 128;
    if (arrays > staging_slot_bytes / unit)
        throw std::invalid_argument("a job of " + std::to_string(arrays) +
                                    " arrays: host staging takes up to " +
                                    std::to_string(staging_slot_bytes / unit));
    return {job.array_bytes, staging_slot_bytes / arrays / unit * unit};
}

}  // namespace

HostStaging::HostStaging(Rank& rank)
    : rank_(rank),
      flags_(std::make_shared<PinnedBuffer<StagingFlags>>(1)),
      staging_(std::make_shared<PinnedBuffer<std::byte>>(4 * staging_slot_bytes)),
      done_(std::make_shared<Buffer<std::uint64_t>>(std::vector<std::uint64_t>{0})) {
    (*flags_)[0] = StagingFlags{};
    let_kernels_run(10 * rank.job().timeout_s);
    // Freeing memory may wait for kernels, which may wait for another rank: later. And what
    // work has left unfinished in a run that has failed may still be read and written.
    rank.keep_until_run_ends(flags_);
    rank.keep_until_run_ends(staging_);
    rank.keep_until_run_ends(done_);
    thread_ = std::thread([this] {
        name_thread_by_role("staging");
        run();
    });
    rank.add(*this);
}

bool HostStaging::finish() {
    if (std::uncaught_exceptions() > exceptions_)
        stop();
    if (last_stream_ != nullptr)
        cudaEventSynchronize(last_);
    {
        std::lock_guard lock(mutex_);
        ended_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable())
        thread_.join();
    rank_.remove(*this);
    return read_flag((*flags_)[0].stop) == 0;
}

void HostStaging::enqueue(StagingJob job, Stream& stream) {
    const Slices slices = cut(job);
    const std::size_t arrays = std::max(job.input_arrays, job.output_arrays);
    const LaunchShape shape = shape_of_transfer(arrays * slices.size(0), ranks_on_a_device(rank_));
    const Relay relay{flags_->data(),
                      done_->data(),
                      Slots{staging_->data()},
                      static_cast<const std::byte*>(job.input),
                      job.input_arrays,
                      static_cast<std::byte*>(job.output),
                      job.output_arrays,
                      slices,
                      slices_};
    if (last_stream_ != nullptr && last_stream_ != stream)
        stream.wait(last_);
    launch_cooperative(stream, shape, relay_kernel, relay);
    last_.record(stream);
    last_stream_ = stream;
    {
        std::lock_guard lock(mutex_);
        tasks_.push_back({slices, slices_, shape.grid.x, std::move(job.work)});
    }
    changed_.notify_all();
    slices_ += slices.count();
}

void HostStaging::synchronize(Stream& stream) {
    stream.synchronize();
    rank_.check();
    if (const std::string text = error(); !text.empty())
        throw std::runtime_error(text);
}

bool HostStaging::wait_until(const std::function<bool()>& ready, double limit_s) const {
    constexpr double patience_s = 1e-3;  // from then on it may be some time
    for (const Stopwatch waited; !ready();) {
        if (read_flag((*flags_)[0].stop) != 0)
            throw StagingStopped();
        if (limit_s > 0 && waited.seconds() > limit_s)
            return false;
        if (waited.seconds() < patience_s)
            sched_yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return true;
}

void HostStaging::stop() noexcept {
    write_flag((*flags_)[0].stop, 1);
}

std::string HostStaging::error() {
    std::lock_guard lock(mutex_);
    return error_;
}

// The thread: one task after the other. After a failure nothing more is done.
void HostStaging::run() try {
    for (;;) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return ended_ || !tasks_.empty(); });
        if (tasks_.empty())
            return;
        const Task task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        carry_out(task);
    }
} catch (const StagingStopped&) {
    // Whatever the run has failed of was told elsewhere.
} catch (const std::exception& error) {
    {
        std::lock_guard lock(mutex_);
        error_ = error.what();
    }
    stop();
}

// All blocks have brought their shares of `slice`.
bool HostStaging::is_staged(const Task& task, std::uint64_t slice) const {
    return std::all_of((*flags_)[0].staged, (*flags_)[0].staged + task.blocks,
                       [&](Flag& flag) { return read_flag(flag) > slice; });
}

void HostStaging::carry_out(const Task& task) const {
    const Slots slots{staging_->data()};
    for (std::size_t i = 0; i < task.slices.count(); i++) {
        const std::uint64_t slice = task.first_slice + i;
        wait_until([&] { return is_staged(task, slice); }, 0);
        task.work({slots.input(slice), slots.output(slice), task.slices.size(i)});
        write_flag((*flags_)[0].done, slice + 1);
    }
}

}  // namespace ddp
