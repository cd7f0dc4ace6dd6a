// A second implementation of the runtime's headers (common/cuda_on_cpu/include), for a page. It has
// what the page's kernels need.
//
//     host           a call into WebAssembly, which the page may suspend
//     stream         a queue; the page says when the device takes the next piece of work out of it
//     CUDA thread    a call of its own, which the page suspends at a barrier, in __nanosleep, or
//                    at each access to memory
//
// The page (static/live.js) decides whose turn it is. It needs no fibers: the browser suspends
// calls (JavaScript Promise Integration), and the page gives each CUDA thread a stack in memory.
// The kernels are compiled with -fsanitize=thread, so that the compiler announces each of their
// accesses by a call; those calls are here, too.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cuda_on_cpu/settings.hpp>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>

[[gnu::tls_model("local-exec")]] constinit thread_local uint3 threadIdx{};
[[gnu::tls_model("local-exec")]] constinit thread_local uint3 blockIdx{};
[[gnu::tls_model("local-exec")]] constinit thread_local dim3 blockDim{};
[[gnu::tls_model("local-exec")]] constinit thread_local dim3 gridDim{};

// ---- What the page does

#define PAGE(name) __attribute__((import_module("page"), import_name(name)))
enum class Access { read, write, atomic };
enum class Work { kernel, copy, event, all };
extern "C" {
PAGE("allocated") void page_allocated(const void* address, std::size_t bytes);
PAGE("enqueued") void page_enqueued(Work work);
PAGE("waits") void page_waits(Work work);  // the host, until so much is done
PAGE("device_done") void page_device_done();
[[noreturn]] PAGE("fails") void page_fails(const char* what);
// These may suspend their caller.
PAGE("device_goes_on") bool page_device_goes_on(bool host_waits);  // with the next piece of work?
PAGE("runs")
void page_runs(unsigned int blocks, unsigned int threads, bool cooperative, void* shared,
               std::size_t bytes);
PAGE("barrier") void page_barrier(unsigned int line);
PAGE("sleeps") void page_sleeps();
PAGE("accesses") void page_accesses(const volatile void* address, std::size_t bytes, Access access);
}

namespace {

// Calls what may suspend the running CUDA thread. Others run meanwhile, and have other coordinates.
template <class Call>
void suspend(Call call) {
    const uint3 thread = threadIdx, block = blockIdx;
    call();
    threadIdx = thread;
    blockIdx = block;
}

// ---- Kernels

const cuda_on_cpu::PreparedKernel* running;
std::byte* shared_memory;

void run(const cuda_on_cpu::PreparedKernel& kernel) {
    running = &kernel;
    gridDim = kernel.shape.grid;
    blockDim = kernel.shape.block;
    std::vector<std::byte> shared(kernel.shape.shared_bytes * gridDim.x);
    shared_memory = shared.data();
    page_runs(gridDim.x, blockDim.x, kernel.shape.cooperative, shared.data(), shared.size());
}

}  // namespace

// Runs the kernel as one thread. The page calls it.
extern "C" __attribute__((export_name("cuda_thread"))) void cuda_thread(unsigned int block,
                                                                        unsigned int thread) {
    blockIdx = {block, 0, 0};
    threadIdx = {thread, 0, 0};
    running->call();
}

namespace cuda_on_cpu {

void block_barrier(Where where) {
    suspend([&] { page_barrier(where.line()); });
}
void yield(unsigned int, Where) {
    suspend([] { page_sleeps(); });
}
void* dynamic_shared_memory() {
    return shared_memory + running->shape.shared_bytes * blockIdx.x;
}
const Settings& settings() {
    static const Settings usual;
    return usual;
}

}  // namespace cuda_on_cpu

// ---- Streams and events

struct CUstream_st {
    std::deque<std::function<void()>> queue;
    std::size_t enqueued = 0, done = 0;

    // Appends work; the device may be so fast that it does some before the host goes on.
    void enqueue(Work work, std::function<void()> run) {
        queue.push_back(std::move(run));
        enqueued++;
        page_enqueued(work);
        while (!queue.empty() && page_device_goes_on(false))
            run_next();
    }
    void wait_for(Work work, std::size_t count) {
        page_waits(work);
        while (done < count && page_device_goes_on(true))
            run_next();
    }

  private:
    void run_next() {
        const std::function<void()> run = std::move(queue.front());
        queue.pop_front();
        run();
        done++;
        page_device_done();
    }
};

// A place in a stream's queue: the event is reached when so much of it is done.
struct CUevent_st {
    CUstream_st* stream = nullptr;
    std::size_t place = 0;
};

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = *greatest = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
    *stream = new CUstream_st;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    if (stream != nullptr)  // in the default stream is nothing
        stream->wait_for(Work::all, stream->enqueued);
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
    *event = new CUevent_st;
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    *event = {stream, stream->enqueued + 1};
    stream->enqueue(Work::event, [] {});
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    event->stream->wait_for(Work::event, event->place);
    return cudaSuccess;
}

cudaError_t cuda_on_cpu::enqueue_kernel(cudaStream_t stream, PreparedKernel& kernel,
                                        std::size_t bytes,
                                        PreparedKernel* (*move_to)(void*, PreparedKernel&),
                                        const void* const*, int) {
    const std::shared_ptr<PreparedKernel> kept(move_to(::operator new(bytes), kernel));
    stream->enqueue(Work::kernel, [kept] { run(*kept); });
    return cudaSuccess;
}

// ---- Memory

static cudaError_t allocate(void** pointer, std::size_t bytes) {
    *pointer = std::malloc(bytes);
    if (*pointer == nullptr)
        return cudaErrorMemoryAllocation;
    page_allocated(*pointer, bytes);
    return cudaSuccess;
}
cudaError_t cudaMalloc(void** pointer, std::size_t bytes, cuda_on_cpu::Where) {
    return allocate(pointer, bytes);
}
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes, cuda_on_cpu::Where) {
    return allocate(pointer, bytes);
}
// Nothing is allocated anew in its place: the page knows arrays by their addresses.
cudaError_t cudaFree(void*, cuda_on_cpu::Where) {
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void*, cuda_on_cpu::Where) {
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                       cuda_on_cpu::Where) {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream, cuda_on_cpu::Where) {
    stream->enqueue(Work::copy, [=] {
        page_accesses(from, bytes, Access::read);
        page_accesses(to, bytes, Access::write);
        std::memcpy(to, from, bytes);
    });
    return cudaSuccess;
}

// ---- Errors: none of the calls above fails but for want of memory

const char* cudaGetErrorName(cudaError_t error) {
    return error == cudaSuccess ? "cudaSuccess" : "cudaErrorMemoryAllocation";
}
const char* cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error" : "out of memory";
}
const char* cublasGetStatusString(cublasStatus_t) {
    return "a status of cuBLAS";
}

// A throw ends the run: the page shows what was thrown.
extern "C" {
void* __cxa_allocate_exception(std::size_t bytes) noexcept {
    return std::malloc(bytes);
}
void __cxa_free_exception(void*) noexcept {}
[[noreturn]] void __cxa_throw(void* thrown, void*, void (*)(void*)) {
    page_fails(static_cast<std::exception*>(thrown)->what());
}
// In place of the libraries' own, which would bring printf and more: a fifth of the file.
[[noreturn]] void abort_message(const char* what, ...) {
    page_fails(what);
}
}

void std::__libcpp_verbose_abort(const char* what, ...) {
    page_fails(what);
}

// ---- Accesses: the compiler calls these (compiler-rt's tsan_interface.h)

#define ANNOUNCED(bytes, form, access, kind)                           \
    void __tsan_##form##access##bytes(void* address) {                 \
        suspend([&] { page_accesses(address, bytes, Access::kind); }); \
    }
#define ANNOUNCED_OF(bytes)                    \
    ANNOUNCED(bytes, , read, read)             \
    ANNOUNCED(bytes, , write, write)           \
    ANNOUNCED(bytes, unaligned_, read, read)   \
    ANNOUNCED(bytes, unaligned_, write, write) \
    ANNOUNCED(bytes, volatile_, read, read)    \
    ANNOUNCED(bytes, volatile_, write, write)
extern "C" {
void __tsan_init() {}
void __tsan_vptr_update(void*, void*) {}
ANNOUNCED_OF(1)
ANNOUNCED_OF(4)
ANNOUNCED_OF(8)
// Copy and fill memory of the host, which no array of the page is.
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
    return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
    return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
    return std::memset(to, value, bytes);
}
int __tsan_atomic32_fetch_add(volatile int* address, int value, int) {
    suspend([&] { page_accesses(address, sizeof *address, Access::atomic); });
    const int old = *address;
    *address = old + value;
    return old;
}
// Counts the host's streams down.
int __tsan_atomic32_fetch_sub(volatile int* address, int value, int order) {
    return __tsan_atomic32_fetch_add(address, -value, order);
}
}
