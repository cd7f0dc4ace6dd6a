// A first look at a GPU, before the book runs on it: the questions that neither a compiler nor a
// document answers.
//
//     part            question
//     start           What device is it, and how long do its first calls take?
//     clock           In which steps does a kernel's clock go?
//     last_error      Does "not ready" stay behind as the last error?
//     side_by_side    Do kernels of several streams run at the same time?
//     new_streams     ... also if nothing was enqueued on these streams before?
//     beside_product  ... also while products fill the GPU?
//     calls           Which calls wait for a kernel that waits?
//     full_queue      Does a full launch queue keep out other threads?
//     pageable        Does a copy to pageable memory?
//     copies          Does a copy stand behind one of another stream?
//     streams         How many streams can wait for one more?
//     bandwidth       How many blocks keep the memory busy?
//     polling         What do blocks that wait cost those that compute?
//
//     gpu_probe                  all of them, in two minutes at most
//     gpu_probe calls streams    these two
//
// chapters/gpu.md says what the book does because of each answer. Every wait within a kernel has a
// limit, so nothing can hang. On a CPU the probe asks cuda_on_cpu, whose settings play what a GPU
// may answer.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/gpu/buffer.hpp"
#include "common/gpu/clock.hpp"
#include "common/gpu/launch.hpp"
#include "common/gpu/stream.hpp"

namespace ddp {
namespace {

using Flag = std::uint32_t;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t limit_ns = 1'500'000'000;  // of every wait within a kernel
constexpr unsigned int block_threads = kernels_run_on_cpu ? 1 : 512;  // those of a collective

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}
void pause_ms(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}
// Prints a line of the answer: "streams      8 that wait, and one that they wait for:  ok".
void answer(const char* part, const std::string& question, const std::string& said) {
    std::printf("%-14s  %-64s  %s\n", part, question.c_str(), said.c_str());
    std::fflush(stdout);
}
// Returns what printf would print.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
    char line[256];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return line;
}
std::string milliseconds(double seconds) {
    return seconds < 1e-3 ? text("%.1f us", seconds * 1e6) : text("%.2f ms", seconds * 1e3);
}

// Starts a thread of another rank, which says what fails.
std::jthread start_rank(std::function<void()> work) {
    return std::jthread([work = std::move(work)] {
        try {
            work();
        } catch (const std::exception& error) {
            answer("", "FAILED", error.what());
        }
    });
}

// ---- Kernels

__device__ Flag read(Flag* flag) {
    return cuda::atomic_ref<Flag, cuda::thread_scope_system>(*flag).load(
        cuda::memory_order_acquire);
}
__device__ void add_one(Flag* flag) {
    cuda::atomic_ref<Flag, cuda::thread_scope_system>(*flag).fetch_add(1,
                                                                       cuda::memory_order_acq_rel);
}
// Waits until the flag is `wanted` or more, and returns whether that was before the limit.
__device__ bool comes(Flag* flag, Flag wanted) {
    const std::uint64_t begin = device_clock_ns();
    while (read(flag) < wanted) {
        if (device_clock_ns() - begin > limit_ns)
            return false;
        __nanosleep(200);
    }
    return true;
}
// Waits for a flag; `late` counts the blocks that have waited in vain.
__global__ void wait_for(Flag* flag, Flag wanted, Flag* late) {
    if (threadIdx.x == 0 && !comes(flag, wanted))
        add_one(late);
    __syncthreads();
}
// Lets blocks of all kernels meet: each counts itself, and waits for the others.
__global__ void meet(Flag* arrived, Flag wanted, Flag* late) {
    if (threadIdx.x == 0) {
        add_one(arrived);
        if (!comes(arrived, wanted))
            add_one(late);
    }
    __syncthreads();
}
__global__ void raise(Flag* flag) {
    add_one(flag);
}
__global__ void do_nothing() {}
__global__ void never_launched_before(Flag*) {}
// Writes by how much the clock has moved on, each time that it has.
__global__ void read_clock(std::uint64_t* steps, int count) {
    std::uint64_t last = device_clock_ns();
    for (int i = 0; i < count;) {
        const std::uint64_t now = device_clock_ns();
        if (now != last)
            steps[i++] = now - last;
        last = now;
    }
}
// Adds up `inputs` arrays of `n` into each of `outputs`, as the reduction of that many ranks does.
template <int inputs, int outputs>
__global__ void add_up(const float4* in, float4* out, std::size_t n) {
    const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += threads) {
        float4 sum = in[i];
        for (int j = 1; j < inputs; j++) {
            const float4 next = in[j * n + i];
            sum.x += next.x, sum.y += next.y, sum.z += next.z, sum.w += next.w;
        }
        for (int j = 0; j < outputs; j++)
            out[j * n + i] = sum;
    }
}

// ---- What the parts share

// A kernel that waits until the host, or a kernel of another rank, raises its flag.
class Gate {
  public:
    Gate() {
        open();
        close();  // what is loaded at a first launch is loaded then
        open();
        stream_.synchronize();
    }
    ~Gate() { open(); }

    void close(unsigned int blocks = 1) {
        flags_[0] = flags_[1] = 0;
        launch_cooperative(stream_, {blocks, block_threads}, wait_for, &flags_[0], 1, &flags_[1]);
    }
    void open() { std::atomic_ref(flags_[0]).store(1); }
    void synchronize() { stream_.synchronize(); }
    bool was_late() { return std::atomic_ref(flags_[1]).load() != 0; }

    Flag* flag() { return &flags_[0]; }
    Stream& stream() { return stream_; }

  private:
    PinnedBuffer<Flag> flags_{2};
    Stream stream_;
};

// Products of square matrices on a stream of its own.
class Products {
  public:
    explicit Products(int most) : matrices_(3 * square(most)) {
        DDP_CHECK(cublasCreate(&blas_));
        DDP_CHECK(cublasSetStream(blas_, stream_));
        DDP_CHECK(cudaMemset(matrices_.data(), 0, matrices_.bytes()));
        DDP_CHECK(cudaDeviceSynchronize());
    }
    ~Products() { cublasDestroy(blas_); }

    // Enqueues [m, k] x [k, n]; cuBLAS chooses a kernel by the shape.
    void multiply(int m, int n, int k, float beta = 0) {
        const float one = 1;
        float* a = matrices_.data();
        float* b = a + matrices_.size() / 3;
        float* c = b + matrices_.size() / 3;
        DDP_CHECK(
            cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a, m, b, k, &beta, c, m));
    }
    Stream& stream() { return stream_; }

  private:
    static std::size_t square(int n) {
        return static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    }
    Buffer<float> matrices_;
    Stream stream_;
    cublasHandle_t blas_ = nullptr;
};

unsigned int multiprocessors() {
    int device = 0, count = 0;
    DDP_CHECK(cudaGetDevice(&device));
    DDP_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return static_cast<unsigned int>(count);
}
// Returns how many blocks a collective of one of `ranks` has: together they take half of the GPU.
unsigned int blocks_of_rank(int ranks) {
    return std::clamp(multiprocessors() / (2 * static_cast<unsigned int>(ranks)), 1u,
                      kernels_run_on_cpu ? 2u : 32u);
}
std::vector<Stream> streams(int count) {
    return std::vector<Stream>(static_cast<std::size_t>(count));
}

// ---- Parts

void start() {
    const auto begin = Clock::now();
    DDP_CHECK(cudaFree(nullptr));
    const double context_s = seconds_since(begin);
    std::size_t free = 0, all = 0, free_then = 0;
    DDP_CHECK(cudaMemGetInfo(&free, &all));
    const auto begin_blas = Clock::now();
    cublasHandle_t blas = nullptr;
    DDP_CHECK(cublasCreate(&blas));
    const double blas_s = seconds_since(begin_blas);
    DDP_CHECK(cudaMemGetInfo(&free_then, &all));
    DDP_CHECK(cublasDestroy(blas));
    cudaDeviceProp device;
    DDP_CHECK(cudaGetDeviceProperties(&device, 0));
    int is_limited = 0;
    DDP_CHECK(cudaDeviceGetAttribute(&is_limited, cudaDevAttrKernelExecTimeout, 0));
    const auto say = [](const char* question, const std::string& said) {
        answer("start", question, said);
    };
    say("device", text("%s, sm_%d%d, %u multiprocessors", device.name, device.major, device.minor,
                       multiprocessors()));
    for (const char* name : {"CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS"}) {
        const char* value = std::getenv(name);
        say(name, value == nullptr ? "not set" : value);
    }
    say("a context takes",
        text("%.2f s, and %zu of %zu MiB are taken", context_s, (all - free) >> 20, all >> 20));
    say("cublasCreate takes",
        text("%.2f s and %zu MiB", blas_s, (free - std::min(free, free_then)) >> 20));
    say("kernels are ended after some seconds", is_limited ? "YES: a display is connected" : "no");
}

void clock() {
    Buffer<std::uint64_t> steps(64);
    launch(nullptr, {1, 1}, read_clock, steps.data(), 64);
    std::vector<std::uint64_t> sorted = steps.to_host_now();
    std::sort(sorted.begin(), sorted.end());
    const auto ns = [&](std::size_t i) { return static_cast<unsigned long long>(sorted[i]); };
    answer("clock", "steps of a kernel's clock",
           text("%llu ns (least %llu, most %llu)", ns(32), ns(0), ns(63)));
}

void last_error() {
    Gate gate;
    Event event;
    gate.close();
    event.record(gate.stream());
    const cudaError_t of_stream = cudaStreamQuery(gate.stream()), then = cudaGetLastError();
    const cudaError_t of_event = cudaEventQuery(event), after = cudaGetLastError();
    gate.open();
    gate.synchronize();
    const auto text = [](cudaError_t query, cudaError_t last) {
        return query == cudaSuccess  ? "the kernel did not wait: ask again"
               : last == cudaSuccess ? "success"
                                     : "not ready: a query must clear it";
    };
    answer("last_error", "cudaStreamQuery leaves behind", text(of_stream, then));
    answer("last_error", "cudaEventQuery leaves behind", text(of_event, after));
}

// Lets `ranks` threads launch a kernel each, whose blocks all meet. Returns how many blocks were
// alone.
Flag blocks_that_miss(int ranks, unsigned int blocks, bool is_cooperative) {
    Buffer<Flag> flags(std::vector<Flag>{0, 0});
    std::vector<Stream> each = streams(ranks);
    std::vector<std::jthread> threads;
    for (Stream& stream : each)
        threads.push_back(start_rank([&] {
            const LaunchShape shape(blocks, block_threads);
            const Flag wanted = blocks * static_cast<Flag>(ranks);
            if (is_cooperative)
                launch_cooperative(stream, shape, meet, flags.data(), wanted, flags.data() + 1);
            else
                launch(stream, shape, meet, flags.data(), wanted, flags.data() + 1);
            stream.synchronize();
        }));
    threads.clear();
    return flags.to_host_now()[1];
}

void side_by_side() {
    for (bool is_cooperative : {true, false})
        for (int ranks : {2, 4, 8, 16, 32}) {
            const unsigned int blocks = blocks_of_rank(ranks);
            const auto begin = Clock::now();
            const Flag missed = blocks_that_miss(ranks, blocks, is_cooperative);
            answer("side_by_side",
                   text("%s launches of %d ranks, %u blocks each",
                        is_cooperative ? "cooperative" : "plain", ranks, blocks),
                   missed == 0 ? "ok (" + milliseconds(seconds_since(begin)) + ")"
                               : text("NOT AT THE SAME TIME: %u blocks waited in vain", missed));
        }
}

// Lets `ranks` threads make a stream each, and launch a kernel that meets those of the others, with
// an event behind it, which is what another stream's kernel may then stand behind. Returns in which
// round that came out: 0 if in none.
// `made_late`: rank 1 makes its stream, or carries out its first command, when the others wait.
enum class FirstCommand { none, before, late };
int round_that_fails(int ranks, int rounds, FirstCommand first) {
    for (int round = 1; round <= rounds; round++) {
        Buffer<Flag> flags(std::vector<Flag>{0, 0});
        std::barrier<> all_are_ready(ranks);
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < ranks; rank++)
            threads.push_back(start_rank([&, rank] {
                cudaStream_t stream = nullptr;
                Event behind;
                const auto make = [&] {
                    DDP_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
                    if (first == FirstCommand::none)
                        return;
                    DDP_CHECK(cudaEventRecord(behind, stream));
                    DDP_CHECK(cudaStreamSynchronize(stream));
                };
                const bool is_late = first == FirstCommand::late && rank == 1;
                if (!is_late)
                    make();
                all_are_ready.arrive_and_wait();
                if (is_late) {
                    pause_ms(5);
                    make();
                }
                launch_cooperative(stream, {1, 1}, meet, flags.data(), static_cast<Flag>(ranks),
                                   flags.data() + 1);
                DDP_CHECK(cudaEventRecord(behind, stream));
                DDP_CHECK(cudaStreamSynchronize(stream));
                DDP_CHECK(cudaStreamDestroy(stream));
            }));
        threads.clear();
        if (flags.to_host_now()[1] != 0)
            return round;
    }
    return 0;
}

void new_streams() {
    constexpr int rounds = kernels_run_on_cpu ? 3 : 40;
    for (const FirstCommand first : {FirstCommand::none, FirstCommand::before, FirstCommand::late})
        for (int ranks : {2, 4, 8}) {
            const int failed = round_that_fails(ranks, rounds, first);
            answer("new_streams",
                   text("%d ranks, %s", ranks,
                        first == FirstCommand::before ? "each stream has carried out an event"
                        : first == FirstCommand::late ? "rank 1 makes its stream while others wait"
                                                      : "nothing was enqueued before"),
                   failed == 0 ? text("ok in %d rounds", rounds)
                               : text("NOT AT THE SAME TIME in round %d of %d", failed, rounds));
        }
}

// Lets two kernels of a collective's size meet while products fill the GPU.
std::string meeting_beside(Products& work, int products, int size, Priority priority) {
    constexpr int ranks = 2;
    const unsigned int blocks = blocks_of_rank(ranks);
    Buffer<Flag> flags(std::vector<Flag>{0, 0});
    Event done;
    std::vector<Stream> each;
    for (int rank = 0; rank < ranks; rank++)
        each.emplace_back(priority);
    const auto begin = Clock::now();
    for (int i = 0; i < products; i++)
        work.multiply(size, size, size);
    done.record(work.stream());
    for (Stream& stream : each)
        launch_cooperative(stream, {blocks, block_threads}, meet, flags.data(), ranks * blocks,
                           flags.data() + 1);
    for (Stream& stream : each)
        stream.synchronize();
    const double met_s = seconds_since(begin);
    const bool computes_on = forget_not_ready(cudaEventQuery(done)) == cudaErrorNotReady;
    done.synchronize();
    if (flags.to_host_now()[1] != 0)
        return "NEVER MET";
    return text("met after %.2f ms, the products were done after %.2f ms%s", met_s * 1e3,
                seconds_since(begin) * 1e3, computes_on ? "" : ": NOT BEFORE THE LAST ONE");
}

void beside_product() {
    constexpr int size = kernels_run_on_cpu ? 128 : 4096, products = 20;
    Products work(size);
    work.multiply(size, size, size);
    work.stream().synchronize();
    for (Priority priority : {Priority::normal, Priority::highest})
        answer("beside_product",
               text("2 kernels of %u blocks, %s priority", blocks_of_rank(2),
                    priority == Priority::highest ? "highest" : "normal"),
               meeting_beside(work, products, size, priority));
}

// A call that another thread makes while a kernel waits.
struct Call {
    const char* name;
    std::function<void()> make;
};

// The calls to try: launches, products, and all that a program may set up late.
class CallsToTry {
  public:
    CallsToTry() {
        work_.multiply(64, 64, 64);  // a handle that is warm; other shapes need other kernels
        launch(other_, {1, 1}, do_nothing);
        other_.synchronize();
    }

    std::vector<Call> launches() {
        return {{"launch of a loaded kernel",
                 [this] {
                     launch(other_, {1, 1}, do_nothing);
                 }},
                {"... and its synchronisation", [this] { other_.synchronize(); }},
                {"first launch of a kernel",
                 [this] {
                     launch(other_, {1, 1}, never_launched_before, nullptr);
                 }},
                {"... and its synchronisation", [this] { other_.synchronize(); }},
                {"product of a shape that was computed", [this] { work_.multiply(64, 64, 64); }},
                {"first product of 1024 x 64 x 784", [this] { work_.multiply(1024, 64, 784); }},
                {"first product of 784 x 1024 x 64, added",
                 [this] { work_.multiply(784, 1024, 64, 1); }},
                {"first product of 10 x 64 x 1024", [this] { work_.multiply(10, 64, 1024); }},
                {"... and their synchronisation", [this] { other_.synchronize(); }}};
    }
    std::vector<Call> allocations() {
        return {
            {"cudaMalloc, 1 KiB", [this] { DDP_CHECK(cudaMalloc(&memory_, 1 << 10)); }},
            {"cudaFree", [this] { DDP_CHECK(cudaFree(std::exchange(memory_, nullptr))); }},
            {"cudaMalloc, 64 MiB", [this] { DDP_CHECK(cudaMalloc(&memory_, 64 << 20)); }},
            {"cudaFree", [this] { DDP_CHECK(cudaFree(std::exchange(memory_, nullptr))); }},
            {"cudaMallocHost, 4 MiB", [this] { DDP_CHECK(cudaMallocHost(&host_, 4 << 20)); }},
            {"cudaFreeHost", [this] { DDP_CHECK(cudaFreeHost(std::exchange(host_, nullptr))); }},
            {"cublasCreate, a second handle", [this] { DDP_CHECK(cublasCreate(&second_)); }},
            {"cublasDestroy",
             [this] {
                 if (second_ != nullptr)
                     DDP_CHECK(cublasDestroy(std::exchange(second_, nullptr)));
             }},
            {"cudaGetDeviceProperties",
             [] {
                 cudaDeviceProp properties;
                 DDP_CHECK(cudaGetDeviceProperties(&properties, 0));
             }},
        };
    }
    std::vector<Call> streams_and_events() {
        return {{"a stream is made", [this] { made_.emplace_back(); }},
                {"... a launch on it, and its synchronisation",
                 [this] {
                     launch(made_.at(0), {1, 1}, do_nothing);
                     made_.at(0).synchronize();
                 }},
                {"... it is destroyed", [this] { made_.clear(); }},
                {"an event is made", [this] { event_.emplace_back(); }},
                {"... recorded, and synchronised",
                 [this] {
                     event_.at(0).record(other_);
                     event_.at(0).synchronize();
                 }},
                {"... it is destroyed", [this] { event_.clear(); }}};
    }
    std::vector<Call> copies() {
        return {{"cudaMemcpy, 4 MiB from pageable memory",
                 [this] { copy_to_device(device_.data(), pageable_.data(), device_.bytes()); }},
                {"cudaMemcpy, 4 MiB to pageable memory",
                 [this] { copy_to_host(pageable_.data(), device_.data(), device_.bytes()); }},
                {"cudaMemcpyAsync from pinned memory, synchronised",
                 [this] { copy(device_.data(), pinned_.data(), cudaMemcpyHostToDevice); }},
                {"cudaMemcpyAsync within the device, synchronised",
                 [this] { copy(spare_.data(), device_.data(), cudaMemcpyDeviceToDevice); }},
                {"cudaMemsetAsync, synchronised", [this] {
                     DDP_CHECK(cudaMemsetAsync(device_.data(), 0, device_.bytes(), other_));
                     other_.synchronize();
                 }}};
    }

  private:
    void copy(void* to, const void* from, cudaMemcpyKind kind) {
        DDP_CHECK(cudaMemcpyAsync(to, from, device_.bytes(), kind, other_));
        other_.synchronize();
    }

    Products work_{1024};
    Stream& other_ = work_.stream();
    Buffer<char> device_{4 << 20}, spare_{4 << 20};
    PinnedBuffer<char> pinned_{4 << 20};
    std::vector<char> pageable_ = std::vector<char>(4 << 20);
    void *memory_ = nullptr, *host_ = nullptr;
    std::vector<Event> event_;
    std::vector<Stream> made_;
    cublasHandle_t second_ = nullptr;
};

// Makes the call while a kernel waits, and returns what became of it.
std::string beside(Gate& gate, const Call& call) {
    constexpr double patience_s = 0.7;
    gate.close();
    pause_ms(5);
    std::atomic<bool> has_ended = false;
    std::string refused;
    const auto begin = Clock::now();
    double took_s = 0;
    std::jthread caller([&] {
        try {
            call.make();
        } catch (const std::exception& error) {
            refused = error.what();
            cudaGetLastError();  // that it was refused is an answer, and no error of what follows
        }
        took_s = seconds_since(begin);
        has_ended = true;
    });
    while (!has_ended && seconds_since(begin) < patience_s)
        pause_ms(1);
    const bool waits = !has_ended || gate.was_late();  // a busy machine may come here too late
    gate.open();
    caller.join();
    gate.synchronize();
    if (!refused.empty())
        return "REFUSED: " + refused.substr(refused.rfind(" failed: ") + 9);
    return waits ? "WAITS FOR THE KERNEL" : "ok (" + milliseconds(took_s) + ")";
}

void calls() {
    CallsToTry to_try;
    Gate gate;
    for (const auto& group :
         {to_try.launches(), to_try.allocations(), to_try.streams_and_events(), to_try.copies()})
        for (const Call& call : group)
            answer("calls", call.name, beside(gate, call));
}

// Fills rank A's queue behind a kernel that waits for a kernel of rank B, which rank B launches
// then.
void full_queue() {
    constexpr int operations = 6000, no_event = -1;
    struct Kind {
        const char* name;
        int event_flags;
        bool is_cooperative, takes_turns;  // whether many events take turns, or one is used again
    };
    const Kind kinds[] = {
        {"kernels", no_event, false, false},
        {"cooperative kernels", no_event, true, false},
        {"kernels and an event", cudaEventBlockingSync, false, false},
        {"kernels and many events", cudaEventBlockingSync, false, true},
        {"kernels and an event that spins", cudaEventDefault, false, false},
        {"kernels and an event without time", cudaEventDisableTiming, false, false},
        {"... which blocks", cudaEventDisableTiming | cudaEventBlockingSync, false, false},
        {"cooperative kernels and an event", cudaEventBlockingSync, true, false},
        {"cooperative, an event without time", cudaEventDisableTiming, true, false}};
    for (const Kind& kind : kinds) {
        const auto launch_one = [&](cudaStream_t stream, auto kernel, auto... arguments) {
            if (kind.is_cooperative)
                launch_cooperative(stream, {1, 1}, kernel, arguments...);
            else
                launch(stream, {1, 1}, kernel, arguments...);
        };
        Gate gate;
        Stream b;
        std::vector<cudaEvent_t> events(kind.takes_turns ? operations : 1);
        for (cudaEvent_t& event : events)
            DDP_CHECK(cudaEventCreateWithFlags(
                &event, static_cast<unsigned int>(std::max(kind.event_flags, 0))));
        gate.close();
        std::atomic<int> launched = 0;
        std::jthread rank_a = start_rank([&] {
            for (; launched < operations; launched++)
                if (kind.event_flags != no_event && launched % 2 == 1)
                    DDP_CHECK(cudaEventRecord(
                        events[static_cast<std::size_t>(launched) % events.size()], gate.stream()));
                else
                    launch_one(gate.stream(), do_nothing);
        });
        int before = -1;
        while (std::exchange(before, launched.load()) != launched)  // until A stands still
            pause_ms(60);
        const auto begin = Clock::now();
        launch_one(b, raise, gate.flag());
        const double launch_s = seconds_since(begin);
        b.synchronize();
        rank_a.join();
        gate.synchronize();
        for (cudaEvent_t event : events)
            DDP_CHECK(cudaEventDestroy(event));
        answer("full_queue", text("%s: A stands still after %d", kind.name, before),
               gate.was_late() ? "B WAS KEPT OUT until A's kernel gave up"
                               : "ok: B's launch took " + milliseconds(launch_s));
    }
}

// Lets rank A copy to pageable memory behind a kernel that waits for rank B, which copies from such
// memory and launches.
void pageable() {
    for (std::size_t bytes : {std::size_t{4}, std::size_t{4} << 20}) {
        Buffer<char> of_a(bytes), of_b(bytes);
        std::vector<char> host_a(bytes), host_b(bytes);
        Gate gate;
        Stream b;
        gate.close();
        std::jthread rank_a = start_rank([&] {
            DDP_CHECK(cudaMemcpyAsync(host_a.data(), of_a.data(), bytes, cudaMemcpyDeviceToHost,
                                      gate.stream()));
            gate.synchronize();
        });
        pause_ms(50);
        const auto begin = Clock::now();
        DDP_CHECK(cudaMemcpyAsync(of_b.data(), host_b.data(), bytes, cudaMemcpyHostToDevice, b));
        launch(b, {1, 1}, raise, gate.flag());
        const double took_s = seconds_since(begin);
        b.synchronize();
        rank_a.join();
        answer("pageable", text("copies of %zu bytes", bytes),
               gate.was_late() ? "A's COPY KEPT B OUT until A's kernel gave up"
                               : "ok: B took " + milliseconds(took_s));
    }
}

// Enqueues copies that wait for a kernel, each on a stream of its own, and one more that need not
// wait.
void copies() {
    constexpr std::size_t bytes = 50176;  // a batch of 64 pictures
    Buffer<char> device(bytes);
    PinnedBuffer<char> pinned(bytes);
    for (const bool to_host : {false, true})
        for (int waiting : {1, 3, 7, 8, 15, 16, 31}) {
            Gate gate;
            Event held;
            std::vector<Stream> each = streams(waiting + 1);
            gate.close();
            held.record(gate.stream());
            const auto copy = [&](Stream& stream) {
                if (to_host)
                    DDP_CHECK(cudaMemcpyAsync(pinned.data(), device.data(), bytes,
                                              cudaMemcpyDeviceToHost, stream));
                else
                    DDP_CHECK(cudaMemcpyAsync(device.data(), pinned.data(), bytes,
                                              cudaMemcpyHostToDevice, stream));
            };
            for (int i = 0; i < waiting; i++) {
                each[static_cast<std::size_t>(i)].wait(held);
                copy(each[static_cast<std::size_t>(i)]);
            }
            copy(each.back());
            bool passes = false;
            for (int i = 0; i < 500 && !passes; i++, pause_ms(1))
                passes = forget_not_ready(cudaStreamQuery(each.back())) == cudaSuccess;
            gate.open();
            DDP_CHECK(cudaDeviceSynchronize());
            answer("copies",
                   text("%s, behind %d copies that wait", to_host ? "to the host" : "to the device",
                        waiting),
                   passes ? "ok" : "HELD BACK by one that it does not wait for");
        }
}

// Lets each of many streams wait for a kernel of one more. Each has an event behind its kernel, as
// a collective has: it is what a queue of several streams stands still at.
void waiting_streams() {
    for (int waiting : {4, 7, 8, 15, 16, 30, 31, 32, 40}) {
        Buffer<Flag> flags(std::vector<Flag>{0, 0});
        std::vector<Stream> each = streams(waiting + 1);
        Event behind;
        for (int i = 0; i < waiting; i++) {
            Stream& stream = each[static_cast<std::size_t>(i)];
            launch(stream, {1, 1}, wait_for, flags.data(), 1, flags.data() + 1);
            behind.record(stream);
        }
        launch(each.back(), {1, 1}, raise, flags.data());
        DDP_CHECK(cudaDeviceSynchronize());
        const bool passes = flags.to_host_now()[1] == 0;
        answer("streams", text("%d that wait, and one that they wait for", waiting),
               passes ? "ok" : "IT STOOD BEHIND ONE OF THEM");
        if (!passes)
            return;
    }
}

template <int inputs, int outputs>
void measure_sum(unsigned int blocks, const Buffer<float4>& in, Buffer<float4>& out,
                 double copy_s_per_byte) {
    const std::size_t n = in.size() / 4;
    Stream stream;
    Event begin, end;
    std::vector<double> seconds;
    for (int i = 0; i < 7; i++) {
        begin.record(stream);
        launch(stream, {blocks, block_threads}, add_up<inputs, outputs>, in.data(), out.data(), n);
        end.record(stream);
        end.synchronize();
        seconds.push_back(end.seconds_since(begin));
    }
    std::sort(seconds.begin(), seconds.end());
    const double bytes = (inputs + outputs) * static_cast<double>(n * sizeof(float4));
    answer("bandwidth",
           text("%d in, %d out, %u blocks of %u", inputs, outputs, blocks, block_threads),
           text("%.0f GB/s, %.0f %% of a copy", bytes / seconds[3] * 1e-9,
                100 * copy_s_per_byte * bytes / seconds[3]));
}

void bandwidth() {
    // Beyond the cache of a GPU.
    constexpr std::size_t elements = kernels_run_on_cpu ? 1 << 16 : std::size_t{1} << 26;
    Buffer<float4> in(elements), out(elements);
    DDP_CHECK(cudaMemset(in.data(), 0, in.bytes()));
    DDP_CHECK(cudaDeviceSynchronize());
    Stream stream;
    Event begin, end;
    double least_s = 1e9;
    for (int i = 0; i < 5; i++) {
        begin.record(stream);
        DDP_CHECK(
            cudaMemcpyAsync(out.data(), in.data(), in.bytes(), cudaMemcpyDeviceToDevice, stream));
        end.record(stream);
        end.synchronize();
        least_s = std::min(least_s, end.seconds_since(begin));
    }
    const double per_byte = least_s / (2.0 * static_cast<double>(in.bytes()));
    answer("bandwidth", "cudaMemcpyAsync within the device, read and written",
           text("%.0f GB/s", 1e-9 / per_byte));
    for (unsigned int blocks :
         kernels_run_on_cpu ? std::vector{1u, 2u} : std::vector{16u, 32u, 64u, 128u, 264u, 528u}) {
        measure_sum<1, 1>(blocks, in, out, per_byte);
        measure_sum<2, 2>(blocks, in, out, per_byte);
        measure_sum<4, 4>(blocks, in, out, per_byte);
    }
}

// Polls a flag, and every 64 polls another one, until one of them is raised.
__global__ void poll(Flag* flag, Flag* seldom) {
    const auto is_raised = [](Flag* which) {
        return cuda::atomic_ref<Flag, cuda::thread_scope_system>(*which).load(
                   cuda::memory_order_relaxed) != 0;
    };
    if (threadIdx.x == 0)
        for (int polls = 1; !is_raised(flag); polls++) {
            if (polls % 64 == 0 && is_raised(seldom))
                break;
            __nanosleep(20);
        }
    __syncthreads();
}

// Where blocks that wait find what they poll, and what they look at seldom.
enum class Polled { device, device_and_host, host };

// Returns the seconds of a product with `rows` rows beside `blocks` blocks that wait.
double product_beside(Products& work, int rows, unsigned int blocks, Polled polled) {
    constexpr int products = 20, size = kernels_run_on_cpu ? 128 : 1024;
    const auto multiply = [&] { work.multiply(size, rows, size); };
    PinnedBuffer<Flag> of_host(1);
    Buffer<Flag> of_device(std::vector<Flag>{0});
    Stream waiting, other;
    Event begin, end;
    of_host[0] = 0;
    multiply();
    work.stream().synchronize();
    if (blocks > 0)
        launch_cooperative(waiting, {blocks, block_threads}, poll,
                           polled == Polled::host ? of_host.data() : of_device.data(),
                           polled == Polled::device ? of_device.data() : of_host.data());
    pause_ms(5);
    begin.record(work.stream());
    for (int i = 0; i < products; i++)
        multiply();
    end.record(work.stream());
    end.synchronize();
    std::atomic_ref(of_host[0]).store(1);
    launch(other, {1, 1}, raise, of_device.data());
    other.synchronize();
    waiting.synchronize();
    return end.seconds_since(begin) / products;
}

void polling() {
    Products work(kernels_run_on_cpu ? 128 : 4096);
    for (int rows : {64, kernels_run_on_cpu ? 128 : 4096}) {
        const auto say = [&](unsigned int blocks, const char* where, Polled polled) {
            answer("polling", text("product of %d rows beside %u blocks%s", rows, blocks, where),
                   milliseconds(product_beside(work, rows, blocks, polled)));
        };
        say(0, "", Polled::device);
        for (unsigned int blocks : {1u, 16u, 64u, 112u})
            if (blocks <= multiprocessors()) {
                say(blocks, " that poll the device's memory", Polled::device);
                say(blocks, " ... and seldom the host's", Polled::device_and_host);
                say(blocks, " that poll the host's", Polled::host);
            }
    }
}

struct Part {
    const char* name;
    void (*run)();
};
constexpr Part parts[] = {{"start", start},
                          {"clock", clock},
                          {"last_error", last_error},
                          {"side_by_side", side_by_side},
                          {"new_streams", new_streams},
                          {"beside_product", beside_product},
                          {"calls", calls},
                          {"full_queue", full_queue},
                          {"pageable", pageable},
                          {"copies", copies},
                          {"streams", waiting_streams},
                          {"bandwidth", bandwidth},
                          {"polling", polling}};

// Runs the parts that `wanted` names, or all, and returns how many could not be run.
int run_parts(const std::vector<std::string>& wanted) {
    int failed = 0;
    for (const Part& part : parts) {
        if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), part.name) == wanted.end())
            continue;
        const auto begin = Clock::now();
        try {
            part.run();
            DDP_CHECK(cudaDeviceSynchronize());
        } catch (const std::exception& error) {
            answer(part.name, "FAILED", error.what());
            failed++;
        }
        std::printf("(%s: %.1f s)\n", part.name, seconds_since(begin));
    }
    return failed;
}

}  // namespace
}  // namespace ddp

int main(int argc, char** argv) {
    const std::vector<std::string> wanted(argv + 1, argv + argc);
    std::string names;
    for (const ddp::Part& part : ddp::parts)
        names += std::string(names.empty() ? "" : ", ") + part.name;
    for (const std::string& name : wanted)
        if ((", " + names + ", ").find(", " + name + ", ") == std::string::npos) {
            std::fprintf(stderr, "error: '%s' is no part of the probe; it has %s.\n", name.c_str(),
                         names.c_str());
            return 2;
        }
    return ddp::run_parts(wanted) == 0 ? 0 : 1;
}
