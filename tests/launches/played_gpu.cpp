// An H100 that does nothing, for a program that nvcc has compiled: LD_PRELOAD puts these functions
// in the place of the CUDA runtime's and of cuBLAS's. Kernels do not run; each launch is a line of
// the file $PLAYED_GPU_LOG, of the launching host thread:
//
//     1 mean_of 1 64 0 _ZN3ddp...7mean_ofEiPKfPf 64 - -
//     1 gemm 128 64 784
//
// The first is thread, kernel, blocks, threads of a block, the priority of the stream, the kernel's
// full name, and its arguments where they are whole numbers; of a list of arrays, how many elements
// they have together. The second is thread, and m, n and k of a product of matrices.
//
// So the host's code shows what it asks of a GPU. Device memory is the host's, and all zero.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string>

namespace {

constexpr int multiprocessors = 132;
constexpr std::size_t memory_bytes = std::size_t{80} << 30;

std::mutex mutex;
std::map<const void*, std::string>& kernel_names() {
    static auto* names = new std::map<const void*, std::string>;
    return *names;
}

std::map<cudaStream_t, int>& priorities() {
    static auto* of_streams = new std::map<cudaStream_t, int>;
    return *of_streams;
}

std::FILE* log_file() {
    static std::FILE* file = [] {
        const char* path = std::getenv("PLAYED_GPU_LOG");
        return std::fopen(path == nullptr ? "/dev/null" : path, "w");
    }();
    return file;
}

// Returns the number of the calling thread, in the order in which threads have launched.
int thread_number() {
    static std::atomic<int> threads = 0;
    thread_local const int mine = ++threads;
    return mine;
}

// Returns "ddp::mean_of(int, float const*, float*)".
std::string readable(const std::string& name) {
    int status = 0;
    char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string result = status == 0 ? text : name;
    std::free(text);
    const std::string unnamed = "(anonymous namespace)::";
    for (std::size_t at = 0; (at = result.find(unnamed)) != std::string::npos;)
        result.erase(at, unnamed.size());
    return result;
}

// Returns "mean_of", of what readable() returns.
std::string short_name(const std::string& text) {
    std::string name = text.substr(0, text.find_first_of("<("));
    name.erase(0, name.rfind(' ') + 1);  // what it returns
    return name.substr(name.rfind(':') + 1);
}

// Returns " 64 - -": the arguments of the kernel whose readable name is `text`.
std::string numbers_in(const std::string& text, void** arguments) {
    std::istringstream parameters(text.substr(text.rfind('(') + 1));
    std::string numbers, type;
    while (std::getline(parameters >> std::ws, type, ',')) {
        if (type.ends_with(')'))
            type.pop_back();
        const void* argument = *arguments++;
        numbers += type.starts_with("ddp::ArrayList<")  // its second member; 03_network/layers
                       ? " " + std::to_string(static_cast<const unsigned long*>(argument)[1])
                       : type == "unsigned long"
                             ? " " + std::to_string(*static_cast<const unsigned long*>(argument))
                         : type == "int" ? " " + std::to_string(*static_cast<const int*>(argument))
                         : type == "bool"
                             ? " " + std::to_string(*static_cast<const bool*>(argument))
                             : " -";
    }
    return numbers;
}

cudaError_t log_launch(const void* kernel, dim3 grid, dim3 block, void** arguments,
                       cudaStream_t stream) {
    std::lock_guard lock(mutex);
    const std::string& name = kernel_names()[kernel];
    const std::string text = readable(name);
    std::fprintf(log_file(), "%d %s %u %u %d %s%s\n", thread_number(), short_name(text).c_str(),
                 grid.x * grid.y * grid.z, block.x * block.y * block.z, priorities()[stream],
                 name.c_str(), numbers_in(text, arguments).c_str());
    // Ranks go on only if their kernels meet, and here none runs.
    if (short_name(text) == "meet")
        **static_cast<unsigned int**>(arguments[2]) = 1;
    return cudaSuccess;
}

cublasStatus_t log_product(int m, int n, int k) {
    std::lock_guard lock(mutex);
    std::fprintf(log_file(), "%d gemm %d %d %d\n", thread_number(), m, n, k);
    return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cudaError_t give(T* to, T value) {
    *to = value;
    return cudaSuccess;
}
template <class Handle>
Handle new_handle() {
    static std::atomic<std::size_t> handles = 0;
    return reinterpret_cast<Handle>(16 * ++handles);
}

}  // namespace

extern "C" {

// ---- What nvcc adds to a program

void** __cudaRegisterFatBinary(void*) {
    static void* handle = nullptr;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
    return 1;
}
void __cudaRegisterFunction(void**, const char* kernel, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
    std::lock_guard lock(mutex);
    kernel_names()[kernel] = name;
}

// ---- Devices

cudaError_t cudaGetDeviceCount(int* count) {
    return give(count, 1);
}
cudaError_t cudaGetDevice(int* device) {
    return give(device, 0);
}
cudaError_t cudaSetDevice(int) {
    return cudaSuccess;
}
cudaError_t cudaSetDeviceFlags(unsigned int) {
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
    return give(value, attribute == cudaDevAttrMultiProcessorCount ? multiprocessors : 0);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
    std::memset(properties, 0, sizeof *properties);
    std::strcpy(properties->name, "NVIDIA H100 (played)");
    properties->multiProcessorCount = multiprocessors;
    properties->totalGlobalMem = memory_bytes;
    properties->major = 9;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* address, int length, int) {
    std::snprintf(address, static_cast<std::size_t>(length), "0000:00:00.0");
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *greatest = -5;
    return give(least, 0);
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
    *free_bytes = memory_bytes;
    return give(total_bytes, memory_bytes);
}
cudaError_t cudaGetLastError() {
    return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t) {
    return "an error of the played GPU";
}
const char* cudaGetErrorString(cudaError_t) {
    return "an error of the played GPU";
}

// ---- Memory

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
    return give(pointer, std::calloc(bytes, 1));
}
cudaError_t cudaFree(void* pointer) {
    std::free(pointer);
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
    return cudaMalloc(pointer, bytes);
}
cudaError_t cudaFreeHost(void* pointer) {
    return cudaFree(pointer);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
    std::memmove(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
    return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) {
    std::memset(pointer, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t) {
    return cudaMemset(pointer, value, bytes);
}

// ---- Streams and events: all that is enqueued is over

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int priority) {
    std::lock_guard lock(mutex);
    *stream = new_handle<cudaStream_t>();
    priorities()[*stream] = priority;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) {
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned int) {
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* user_data) {
    function(user_data);
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
    return give(event, new_handle<cudaEvent_t>());
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
    return give(milliseconds, 1.0f);
}

// ---- Launches

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t, cudaStream_t stream) {
    return log_launch(kernel, grid, block, arguments, stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                        std::size_t, cudaStream_t stream) {
    return log_launch(kernel, grid, block, arguments, stream);
}
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
    *handle = new_handle<cublasHandle_t>();
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t) {
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t) {
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSgemm_v2(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n,
                              int k, const float*, const float*, int, const float*, int,
                              const float*, float*, int) {
    return log_product(m, n, k);
}
}
