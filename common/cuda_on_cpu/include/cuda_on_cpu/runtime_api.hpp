#pragma once
// The host's side of the subset: memory, streams, events, launches. Every call has CUDA's own
// signature plus a last parameter that nobody passes: where it was called, for the messages.
#include <array>
#include <memory>
#include <new>
#include <tuple>
#include <utility>

#include "cuda_on_cpu/types.hpp"

// ---- Errors

// Return the error in words. cudaGetErrorString adds what exactly went wrong, if this thread's last
// error was that.
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

// ---- Devices
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
// Sets how host threads wait for the current device. Here they always sleep, whatever is set.
cudaError_t cudaSetDeviceFlags(unsigned int flags);
cudaError_t cudaGetDeviceFlags(unsigned int* flags);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char* address, int length, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset(cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer_device);
cudaError_t cudaDeviceEnablePeerAccess(int peer_device, unsigned int flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer_device);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);

// ---- Memory
cudaError_t cudaMalloc(void** pointer, std::size_t bytes,
                       cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaFree(void* pointer, cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned int flags,
                          cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes,
                           cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaFreeHost(void* pointer, cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned int flags);
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
cudaError_t cudaMemcpy(void* destination, const void* source, std::size_t bytes,
                       cudaMemcpyKind kind,
                       cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaMemcpyAsync(void* destination, const void* source, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                            cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes,
                       cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes,
                            cudaStream_t stream = nullptr,
                            cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer,
                                cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags,
                                 cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
cudaError_t cudaIpcCloseMemHandle(void* pointer,
                                  cuda_on_cpu::Where where = cuda_on_cpu::Where::current());

template <class T>
cudaError_t cudaMalloc(T** pointer, std::size_t bytes,
                       cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return cudaMalloc(reinterpret_cast<void**>(pointer), bytes, where);
}
template <class T>
cudaError_t cudaMallocHost(T** pointer, std::size_t bytes,
                           cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return cudaMallocHost(reinterpret_cast<void**>(pointer), bytes, where);
}
template <class T>
cudaError_t cudaHostAlloc(T** pointer, std::size_t bytes, unsigned int flags,
                          cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags, where);
}

// ---- Streams and events
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

// ---- Stream capture and graphs. cudaGraphGetNodes only counts: `nodes` must be nullptr.
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphUpload(cudaGraphExec_t instance, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

// ---- Launches
namespace cuda_on_cpu {

struct LaunchShape {
    dim3 grid;
    dim3 block;
    std::size_t shared_bytes = 0;
    bool cooperative = false;
};

// A kernel with its arguments, as it waits in a stream. `call` runs it as ONE thread of the grid.
struct PreparedKernel {
    virtual ~PreparedKernel() = default;
    virtual void call() const = 0;
    const void* function = nullptr;
    LaunchShape shape;
    Where where;
};

template <class... Parameters>
struct KernelWithArguments final : PreparedKernel {
    KernelWithArguments(void (*kernel)(Parameters...), const std::tuple<Parameters...>& arguments)
        : kernel_(kernel), arguments_(arguments) {}
    void call() const override { std::apply(kernel_, arguments_); }

  private:
    void (*kernel_)(Parameters...);
    std::tuple<Parameters...> arguments_;
};

// Copies a prepared kernel into the stream's queue. `move_to` places it at the address that it is
// given.
cudaError_t enqueue_kernel(cudaStream_t stream, PreparedKernel& kernel, std::size_t bytes,
                           PreparedKernel* (*move_to)(void* address, PreparedKernel& kernel),
                           const void* const* pointers, int pointer_count);
int max_active_blocks(dim3 block, std::size_t shared_bytes);
cudaError_t allow_shared_bytes(const void* kernel, int bytes);

// Launches `kernel` on `stream`; arguments are taken by value, as on a GPU. Errors: a shape that no
// GPU takes, a pointer argument that is not device or pinned memory, a destroyed stream.
template <class... Parameters>
cudaError_t launch(cudaStream_t stream, LaunchShape shape, void (*kernel)(Parameters...),
                   const std::tuple<Parameters...>& arguments, Where where) {
    static_assert((std::is_trivially_copyable_v<Parameters> && ...),
                  "kernel parameters are copied to the device as bytes: they must be trivially "
                  "copyable values or device pointers");
    using Kernel = KernelWithArguments<Parameters...>;
    std::array<const void*, sizeof...(Parameters) + 1> pointers{};
    int pointer_count = 0;
    std::apply(
        [&](const auto&... argument) {
            [[maybe_unused]] auto collect = [&]<class T>(const T& value) {
                if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
                    pointers[static_cast<std::size_t>(pointer_count++)] =
                        const_cast<const void*>(static_cast<const volatile void*>(value));
            };
            (collect(argument), ...);
        },
        arguments);
    Kernel prepared(kernel, arguments);
    prepared.function = reinterpret_cast<const void*>(kernel);
    prepared.shape = shape;
    prepared.where = where;
    return enqueue_kernel(
        stream, prepared, sizeof(Kernel),
        [](void* address, PreparedKernel& from) -> PreparedKernel* {
            return new (address) Kernel(static_cast<Kernel&&>(from));
        },
        pointers.data(), pointer_count);
}

template <class... Parameters, std::size_t... I>
std::tuple<Parameters...> unpack(void** arguments, std::index_sequence<I...>) {
    return {*static_cast<std::remove_reference_t<Parameters>*>(arguments[I])...};
}
template <class... Parameters>
cudaError_t launch(cudaStream_t stream, LaunchShape shape, void (*kernel)(Parameters...),
                   void** arguments, Where where) {
    return launch(stream, shape, kernel,
                  unpack<Parameters...>(arguments, std::index_sequence_for<Parameters...>()),
                  where);
}
// Launches a kernel by its address, as CUDA's manual does: `(const void*)kernel`. The parameters
// must be numbers and pointers: their types are in the name that the program's file has for it.
cudaError_t launch(cudaStream_t stream, LaunchShape shape, const void* kernel, void** arguments,
                   Where where);

}  // namespace cuda_on_cpu

template <class Kernel>
cudaError_t cudaLaunchKernel(Kernel* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes = 0, cudaStream_t stream = nullptr,
                             cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return cuda_on_cpu::launch(stream, {grid, block, shared_bytes, false}, kernel, arguments,
                               where);
}
template <class Kernel>
cudaError_t cudaLaunchCooperativeKernel(Kernel* kernel, dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared_bytes = 0, cudaStream_t stream = nullptr,
                                        cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return cuda_on_cpu::launch(stream, {grid, block, shared_bytes, true}, kernel, arguments, where);
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel*, int block_size,
                                                          std::size_t shared_bytes) {
    *blocks =
        cuda_on_cpu::max_active_blocks(dim3(static_cast<unsigned int>(block_size)), shared_bytes);
    return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute, int value) {
    return cuda_on_cpu::allow_shared_bytes(reinterpret_cast<const void*>(kernel), value);
}
