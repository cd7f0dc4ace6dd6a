// A second implementation of the runtime's headers (common/cuda_on_cpu/include), for a page: what
// its kernels need. The host is a call into WebAssembly, and a CUDA thread a call of its own, with
// a stack in memory. The page (static/live.js) suspends them at a barrier, in __nanosleep, or at
// each access to memory, and decides whose turn it is. A launch returns when its kernel has ended.
#include <cuda_runtime.h>
#include <cuda_on_cpu/settings.hpp>

#include <cstdlib>
#include <cstring>
#include <vector>

[[gnu::tls_model("local-exec")]] constinit thread_local uint3 threadIdx{};
[[gnu::tls_model("local-exec")]] constinit thread_local uint3 blockIdx{};
[[gnu::tls_model("local-exec")]] constinit thread_local dim3 blockDim{};
[[gnu::tls_model("local-exec")]] constinit thread_local dim3 gridDim{};

// ---- What the page does

#define PAGE(name) __attribute__((import_module("page"), import_name(name)))
enum class Access { read, write, atomic };
extern "C" {
PAGE("allocated") void page_allocated(const void* address, std::size_t bytes);
// These may suspend their caller.
PAGE("runs")
void page_runs(unsigned int blocks, unsigned int threads, void* shared, std::size_t bytes);
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
    page_runs(gridDim.x, blockDim.x, shared.data(), shared.size());
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

// ---- Streams

// The host waits for each piece of work, so that nothing is ever left in a stream. Nothing is
// allocated where something has been freed, since the page knows arrays by their addresses.
#define NOTHING_TO_DO(name, ...)    \
    cudaError_t name(__VA_ARGS__) { \
        return cudaSuccess;         \
    }
NOTHING_TO_DO(cudaStreamSynchronize, cudaStream_t)
NOTHING_TO_DO(cudaStreamDestroy, cudaStream_t)
NOTHING_TO_DO(cudaEventCreateWithFlags, cudaEvent_t*, unsigned int)
NOTHING_TO_DO(cudaEventRecord, cudaEvent_t, cudaStream_t)
NOTHING_TO_DO(cudaEventDestroy, cudaEvent_t)
NOTHING_TO_DO(cudaFree, void*, cuda_on_cpu::Where)

struct CUstream_st {};
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = *greatest = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
    static CUstream_st only;
    *stream = &only;
    return cudaSuccess;
}
cudaError_t cuda_on_cpu::enqueue_kernel(cudaStream_t, PreparedKernel& kernel, std::size_t,
                                        PreparedKernel* (*)(void*, PreparedKernel&),
                                        const void* const*, int) {
    run(kernel);
    return cudaSuccess;
}

// ---- Memory

cudaError_t cudaMalloc(void** pointer, std::size_t bytes, cuda_on_cpu::Where) {
    *pointer = std::malloc(bytes);
    if (*pointer == nullptr)
        return cudaErrorMemoryAllocation;
    page_allocated(*pointer, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                       cuda_on_cpu::Where) {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}

// ---- Errors: none of the calls above fails but for want of memory

const char* cudaGetErrorName(cudaError_t error) {
    return error == cudaSuccess ? "cudaSuccess" : "cudaErrorMemoryAllocation";
}
const char* cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error" : "out of memory";
}

// Nothing is thrown but for want of memory. A trap ends the run, and the page says that it did.
extern "C" {
void* __cxa_allocate_exception(std::size_t bytes) noexcept {
    return std::malloc(bytes);
}
void __cxa_free_exception(void*) noexcept {}
[[noreturn]] void __cxa_throw(void*, void*, void (*)(void*)) {
    __builtin_trap();
}
// In place of the libraries' own, which would bring printf and more: a fifth of the file.
[[noreturn]] void abort_message(const char*, ...) {
    __builtin_trap();
}
}
void std::__libcpp_verbose_abort(const char*, ...) {
    __builtin_trap();
}

// ---- Accesses: -fsanitize=thread has the compiler call these (compiler-rt's tsan_interface.h)

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
