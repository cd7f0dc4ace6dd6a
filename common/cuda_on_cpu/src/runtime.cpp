#include "runtime.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_set>
#include <vector>

#include "capture.hpp"
#include "cuda_on_cpu/observe.hpp"
#include "cuda_on_cpu/settings.hpp"
#include "faults.hpp"
#include "graph.hpp"
#include "memory.hpp"
#include "protection.hpp"

namespace cuda_on_cpu {
namespace {

struct Runtime {
    std::mutex mutex;
    std::set<cudaStream_t> streams;
    std::vector<std::shared_ptr<Stream>> leaving;  // destroyed, and they had work left
    std::unordered_set<cudaEvent_t> events;
    std::map<int, std::shared_ptr<Stream>> default_streams;
    std::set<std::pair<int, int>> peers;  // device, peer device
    std::map<int, unsigned int> flags;    // of cudaSetDeviceFlags, by device
    const int devices = settings().devices;
};

void at_exit(int status, void*);

// Never destroyed: streams' threads may use it until the process is gone.
Runtime& runtime() {
    static auto* instance = [] {
        auto* made = new Runtime;  // first: reading the settings may end the program
        install_fault_handlers();
        on_exit(at_exit, nullptr);
        return made;
    }();
    return *instance;
}

thread_local int current_device = 0;
thread_local bool host_function_thread = false;
std::atomic<std::uint64_t> contexts{0};  // on which devices

void need_context() {
    const auto bit = std::uint64_t{1} << current_device;
    if ((contexts.load(std::memory_order_relaxed) & bit) == 0)
        contexts.fetch_or(bit);
}

std::string handle_leak_report() {
    return live_blas_handles == 0 ? ""
                                  : "cuda_on_cpu: never destroyed: handles of cublasCreate, " +
                                        std::to_string(live_blas_handles) + "\n";
}

// Work in flight comes to its end (kernels have a time limit), then what was left behind is named.
// A failed kernel that nobody noticed is a failure of the program, and in strict mode so is a leak.
// (A program that has failed has said why; what it could not free would only hide that.)
void at_exit(int status, void*) {
    for (const auto& stream : all_streams())
        stream->synchronize(stream->last_ticket());
    const bool unnoticed = print_unread_diagnoses();
    const std::string leaks = status != 0 || device_is_lost()
                                  ? ""
                                  : leak_report() + handle_leak_report() + graph_leak_report();
    std::fputs((leaks + poll_report()).c_str(), stderr);
    if (const int depth = settings().depth; depth > 0 && max_held > 0)
        std::fprintf(stderr,
                     "cuda_on_cpu: behind a kernel that may wait for others a launch queue held up "
                     "to %d of %d\n",
                     static_cast<int>(max_held), depth);
    if (status == 0 && (unnoticed || (!leaks.empty() && settings().strict))) {
        std::fflush(nullptr);
        _exit(1);
    }
}

// Ends the process when all of its own code has ended, and does not unload its libraries. OpenBLAS
// would wait for a thread of its own, which tries forever to get memory where there is none: under
// a memory limit, a program that has said so would not end. (Sanitizers report after this.)
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void end_process(int status, void*) {
    std::cout.flush();
    std::fflush(nullptr);
    _exit(status);
}
[[maybe_unused]] const int registered_first_and_called_last = on_exit(end_process, nullptr);
#endif

// Returns all streams that were made, destroyed since or not. The caller holds the lock.
std::vector<std::shared_ptr<Stream>> made_streams() {
    std::vector<std::shared_ptr<Stream>> result = runtime().leaving;
    for (cudaStream_t handle : runtime().streams)
        result.push_back(handle->stream);
    return result;
}

// Lets the streams go that were destroyed and have ended. An event that was recorded in one keeps
// it, but not its place in a launch queue.
void let_go_of_those_that_left() {
    std::vector<std::shared_ptr<Stream>> left;  // their threads are joined without the lock
    std::lock_guard lock(runtime().mutex);
    std::erase_if(runtime().leaving, [&](const auto& stream) {
        const bool is_done = stream->is_done(stream->last_ticket());
        if (is_done) {
            stream->leave_queue();
            left.push_back(stream);
        }
        return is_done;
    });
}

// Default streams, too.
std::vector<std::shared_ptr<Stream>> known_streams() {
    std::vector<std::shared_ptr<Stream>> result = made_streams();
    for (const auto& [device, stream] : runtime().default_streams)
        if (stream)
            result.push_back(stream);
    return result;
}

struct WaitForStream final : Command {
    WaitForStream(std::shared_ptr<Stream> other, Stream::Ticket ticket)
        : other(std::move(other)), ticket(ticket) {}
    void run(Stream& stream) override {
        stream.leave_core();
        other->wait(ticket);
    }
    std::shared_ptr<Stream> other;
    Stream::Ticket ticket;
};

// The event of a handle as it stands now; nothing for one that was destroyed or never created: then
// the failure is already recorded.
std::optional<CUevent_st> find_event(cudaEvent_t handle, const char* call) {
    std::lock_guard lock(runtime().mutex);
    if (!runtime().events.contains(handle)) {
        call_failed(cudaErrorInvalidResourceHandle,
                    std::string(call) + " was given an event that was destroyed or never created");
        return std::nullopt;
    }
    return *handle;
}

// CUDA promises that host functions of a process may run one at a time: here they always do.
class HostFunctionThread {
  public:
    void run(cudaHostFn_t function, void* user_data) {
        std::lock_guard turn(turns_);
        std::unique_lock lock(mutex_);
        if (!thread_.joinable())
            thread_ = std::thread([this] { work(); });
        function_ = function;
        user_data_ = user_data;
        changed_.notify_all();
        changed_.wait(lock, [&] { return function_ == nullptr; });
    }

  private:
    void work() {
        host_function_thread = true;
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return function_ != nullptr; });
            lock.unlock();
            function_(user_data_);
            lock.lock();
            function_ = nullptr;
            changed_.notify_all();
        }
    }

    std::mutex turns_;
    std::mutex mutex_;
    std::condition_variable changed_;
    cudaHostFn_t function_ = nullptr;
    void* user_data_ = nullptr;
    std::thread thread_;
};

}  // namespace

void enqueue_wait(Stream& stream, const std::shared_ptr<Stream>& other, Stream::Ticket ticket) {
    if (!other->is_done(ticket))
        stream.enqueue([&](void* memory) { return new (memory) WaitForStream(other, ticket); });
}

cudaError_t check_caller(const char* call) {
    if (host_function_thread)
        return call_failed(cudaErrorNotPermitted,
                           std::string(call) +
                               " was called from a host function (cudaLaunchHostFunc), "
                               "where CUDA allows no call of its own");
    return cudaSuccess;
}

cudaError_t enter_call(const char* call) {
    runtime();
    if (const cudaError_t error = check_caller(call))
        return error;
    need_context();
    if (settings().strict || host_guard() == HostGuard::page_protection)
        install_fault_handlers();
    return device_status();
}

std::uint64_t devices_with_context() {
    return contexts.load();
}

std::shared_ptr<Stream> find_stream(cudaStream_t handle, const char* call) {
    std::lock_guard lock(runtime().mutex);
    if (handle == nullptr) {
        std::shared_ptr<Stream>& stream = runtime().default_streams[current_device];
        if (!stream)
            stream = std::make_shared<Stream>(current_device, true);
        return stream;
    }
    if (!runtime().streams.contains(handle)) {
        call_failed(cudaErrorInvalidResourceHandle,
                    std::string(call) + " was given a stream that was destroyed or never created");
        return nullptr;
    }
    return handle->stream;
}

// Collects first, since a full queue makes enqueue_wait wait.
void order_with_default_stream(Stream& stream) {
    if (!stream.blocking)
        return;
    std::vector<std::shared_ptr<Stream>> others;
    {
        std::lock_guard lock(runtime().mutex);
        const std::shared_ptr<Stream>& default_stream = runtime().default_streams[stream.device];
        if (default_stream.get() != &stream)
            others.push_back(default_stream);
        else
            for (const auto& made : made_streams())
                if (made->blocking && made->device == stream.device)
                    others.push_back(made);
    }
    for (const auto& other : others)
        if (other)
            enqueue_wait(stream, other, other->last_ticket());
}

bool is_default_stream(const Stream& stream) {
    std::lock_guard lock(runtime().mutex);
    return runtime().default_streams[stream.device].get() == &stream;
}

cudaStream_t make_stream(int device, bool blocking) {
    let_go_of_those_that_left();
    auto* handle = new CUstream_st{std::make_shared<Stream>(device, blocking)};
    std::lock_guard lock(runtime().mutex);
    runtime().streams.insert(handle);
    return handle;
}

void leave_stream(cudaStream_t handle) {
    {
        std::lock_guard lock(runtime().mutex);
        runtime().streams.erase(handle);
        runtime().leaving.push_back(handle->stream);
        delete handle;
    }
    let_go_of_those_that_left();
}

std::vector<std::shared_ptr<Stream>> all_streams() {
    std::lock_guard lock(runtime().mutex);
    return known_streams();
}

void wait_inside_driver(BesideCooperative beside) {
    if (!settings().waits)
        return;
    const DriverLock driver;
    if (beside == BesideCooperative::goes_on && !unfinished_cooperative_kernel().empty())
        return;
    for (const auto& stream : all_streams())
        stream->wait(stream->last_ticket());
}

bool has_peer_access(int device, int peer) {
    std::lock_guard lock(runtime().mutex);
    return device == peer || runtime().peers.contains({device, peer});
}

void check_time_limits() {
    for (const auto& stream : all_streams())
        stream->check_time_limit();
}

std::string unfinished_cooperative_kernel() {
    for (const auto& stream : all_streams()) {
        const std::string name = stream->unfinished_cooperative_kernel();
        if (!name.empty())
            return name;
    }
    return "";
}

void host_has_synchronised() {
    if (!settings().strict)
        return;
    std::lock_guard lock(runtime().mutex);
    reopen_finished_copies([](const void* stream, unsigned long ticket) {
        for (const auto& known : known_streams())
            if (known.get() == stream)
                return known->is_done(ticket);
        return true;
    });
}

void run_host_function(cudaHostFn_t function, void* user_data) {
    static auto* thread = new HostFunctionThread;
    thread->run(function, user_data);
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

// ---- Devices

cudaError_t cudaGetDeviceCount(int* count) {
    *count = runtime().devices;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= runtime().devices)
        return call_failed(cudaErrorInvalidDevice, "cudaSetDevice(" + std::to_string(device) +
                                                       "): devices are 0 to " +
                                                       std::to_string(runtime().devices - 1));
    current_device = device;
    need_context();  // from CUDA 12 on
    return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    const bool is_one_of_them =
        flags == cudaDeviceScheduleAuto || flags == cudaDeviceScheduleSpin ||
        flags == cudaDeviceScheduleYield || flags == cudaDeviceScheduleBlockingSync;
    if (!is_one_of_them)
        return call_failed(cudaErrorInvalidValue,
                           "cudaSetDeviceFlags(" + std::to_string(flags) +
                               "): CUDA on a CPU knows one of the flags cudaDeviceSchedule...");
    std::lock_guard lock(runtime().mutex);
    runtime().flags[current_device] = flags;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
    std::lock_guard lock(runtime().mutex);
    *flags = runtime().flags[current_device];
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (device < 0 || device >= runtime().devices)
        return call_failed(cudaErrorInvalidDevice,
                           "cudaGetDeviceProperties: there is no device " + std::to_string(device));
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "CPU (CUDA on a CPU)");
    properties->totalGlobalMem = total_device_bytes();
    properties->sharedMemPerBlock = max_shared_bytes;
    properties->sharedMemPerBlockOptin = shared_bytes_optin;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = max_threads;
    const int threads[3] = {1024, 1024, 64};
    const int grid[3] = {2147483647, 65535, 65535};
    std::copy_n(threads, 3, properties->maxThreadsDim);
    std::copy_n(grid, 3, properties->maxGridSize);
    properties->multiProcessorCount = processors();
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->maxBlocksPerMultiProcessor = max_active_blocks(dim3(1), 0);
    properties->major = 9;
    properties->minor = 0;
    properties->cooperativeLaunch = 1;
    properties->unifiedAddressing = 1;
    properties->canMapHostMemory = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* address, int length, int device) {
    if (device < 0 || device >= runtime().devices)
        return call_failed(cudaErrorInvalidDevice,
                           "cudaDeviceGetPCIBusId: there is no device " + std::to_string(device));
    std::snprintf(address, static_cast<std::size_t>(length), "0000:%02x:00.0", device);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    cudaDeviceProp properties;
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, device))
        return error;
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock:
            *value = properties.maxThreadsPerBlock;
            break;
        case cudaDevAttrMaxSharedMemoryPerBlock:
            *value = static_cast<int>(properties.sharedMemPerBlock);
            break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            *value = static_cast<int>(properties.sharedMemPerBlockOptin);
            break;
        case cudaDevAttrWarpSize:
            *value = properties.warpSize;
            break;
        case cudaDevAttrMultiProcessorCount:
            *value = properties.multiProcessorCount;
            break;
        case cudaDevAttrKernelExecTimeout:
            *value = settings().display;
            break;
        case cudaDevAttrComputeCapabilityMajor:
            *value = properties.major;
            break;
        case cudaDevAttrComputeCapabilityMinor:
            *value = properties.minor;
            break;
        case cudaDevAttrCooperativeLaunch:
            *value = properties.cooperativeLaunch;
            break;
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
    if (const cudaError_t status = enter_call("cudaDeviceSynchronize"))
        return status;
    if (const cudaError_t error = refuse_if_any_is_captured("cudaDeviceSynchronize"))
        return error;
    for (const auto& stream : all_streams())
        if (stream->device == current_device)
            stream->synchronize(stream->last_ticket());
    host_has_synchronised();
    return device_status();
}

cudaError_t cudaDeviceReset(Where where) {
    if (const cudaError_t error = check_caller("cudaDeviceReset"))
        return error;
    if (const cudaError_t error = refuse_if_any_is_captured("cudaDeviceReset"))
        return error;
    for (const auto& stream : all_streams())
        stream->synchronize(stream->last_ticket());
    host_has_synchronised();
    release_everything(where);
    forget_device_failure();
    cudaGetLastError();
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer_device) {
    const int devices = runtime().devices;
    *can_access = device != peer_device && std::min(device, peer_device) >= 0 &&
                  std::max(device, peer_device) < devices;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer_device, unsigned int) {
    int possible = 0;
    cudaDeviceCanAccessPeer(&possible, current_device, peer_device);
    if (!possible)
        return call_failed(cudaErrorInvalidDevice,
                           "cudaDeviceEnablePeerAccess(" + std::to_string(peer_device) +
                               "): device " + std::to_string(current_device) + " has no such peer");
    std::lock_guard lock(runtime().mutex);
    if (!runtime().peers.insert({current_device, peer_device}).second)
        return call_failed(
            cudaErrorPeerAccessAlreadyEnabled,
            "cudaDeviceEnablePeerAccess(" + std::to_string(peer_device) + ") was called before");
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer_device) {
    std::lock_guard lock(runtime().mutex);
    if (runtime().peers.erase({current_device, peer_device}) == 0)
        return call_failed(cudaErrorPeerAccessNotEnabled, "cudaDeviceDisablePeerAccess(" +
                                                              std::to_string(peer_device) +
                                                              "): access was not enabled");
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
    *version = 13000;
    return cudaSuccess;
}

// ---- Streams

static constexpr const char* does_nothing = "which does nothing before its graph is launched";

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
    if (const cudaError_t status = enter_call("cudaStreamCreate"))
        return status;
    wait_inside_driver(BesideCooperative::goes_on);
    *stream = make_stream(current_device, (flags & cudaStreamNonBlocking) == 0);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int) {
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = *greatest = 0;  // "stream priorities are not supported", in CUDA's terms
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    if (const cudaError_t error = check_caller("cudaStreamDestroy"))
        return error;
    if (handle == nullptr)
        return call_failed(cudaErrorInvalidResourceHandle,
                           "cudaStreamDestroy was given the default stream, which nobody made");
    const std::shared_ptr<Stream> stream = find_stream(handle, "cudaStreamDestroy");
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    leave_stream(handle);
    return give_up_capture(*stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    if (const cudaError_t status = enter_call("cudaStreamSynchronize"))
        return status;
    const std::shared_ptr<Stream> stream = find_stream(handle, "cudaStreamSynchronize");
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error =
            refuse_if_captured(*stream, "cudaStreamSynchronize", does_nothing))
        return error;
    if (const cudaError_t error = order_before(*stream, "cudaStreamSynchronize"))
        return error;
    stream->synchronize(stream->last_ticket());
    host_has_synchronised();
    return device_status();
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    if (const cudaError_t status = enter_call("cudaStreamQuery"))
        return status;
    const std::shared_ptr<Stream> stream = find_stream(handle, "cudaStreamQuery");
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = refuse_if_captured(*stream, "cudaStreamQuery", does_nothing))
        return error;
    if (!stream->ask(stream->last_ticket())) {
        stream->check_time_limit();
        return not_ready();
    }
    host_has_synchronised();
    return device_status();
}

namespace {

struct RecordEvent final : Command {
    explicit RecordEvent(std::shared_ptr<Recording> recording) : recording(std::move(recording)) {}
    void run(Stream&) override { recording->time = std::chrono::steady_clock::now(); }
    std::shared_ptr<Recording> recording;
};

std::shared_ptr<Recording> record(const std::shared_ptr<Stream>& stream, std::uint64_t room) {
    const auto recording = std::make_shared<Recording>();
    recording->stream = stream;
    recording->ticket =
        stream->enqueue([&](void* memory) { return new (memory) RecordEvent(recording); },
                        settings().depth > 0 ? room : 1);
    return recording;
}

struct CallHost final : Command {
    CallHost(cudaHostFn_t function, void* user_data) : function(function), user_data(user_data) {}
    void run(Stream&) override {
        host_has_synchronised();  // the function may use what the stream has copied before it
        run_host_function(function, user_data);
    }
    cudaHostFn_t function;
    void* user_data;
};

}  // namespace

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle,
                                unsigned int) {
    if (const cudaError_t status = enter_call("cudaStreamWaitEvent"))
        return status;
    const auto stream = find_stream(stream_handle, "cudaStreamWaitEvent");
    const auto event = find_event(event_handle, "cudaStreamWaitEvent");
    if (!stream || !event)
        return cudaErrorInvalidResourceHandle;
    cudaError_t error = cudaSuccess;
    if (note_wait(stream, event->mark, event->last != nullptr, &error))
        return error;
    if ((error = begin_work(*stream, "cudaStreamWaitEvent")) != cudaSuccess)
        return error;
    if (event->last)
        enqueue_wait(*stream, event->last->stream, event->last->ticket);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* user_data) {
    if (const cudaError_t status = enter_call("cudaLaunchHostFunc"))
        return status;
    const auto stream = find_stream(handle, "cudaLaunchHostFunc");
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = begin_work(*stream, "cudaLaunchHostFunc"))
        return error;
    place(*stream, [&](void* memory) { return new (memory) CallHost(function, user_data); });
    return cudaSuccess;
}

// ---- Events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
    if (const cudaError_t status = enter_call("cudaEventCreate"))
        return status;
    // Takes the room of 17 kernels if a host may sleep until it (measured on an H200).
    const bool has_time = (flags & cudaEventDisableTiming) == 0;
    const std::uint64_t room = (flags & cudaEventBlockingSync) != 0 ? 17 : has_time ? 1 : 0;
    auto* handle = new CUevent_st{nullptr, has_time, room};
    std::lock_guard lock(runtime().mutex);
    runtime().events.insert(handle);
    *event = handle;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    if (const cudaError_t error = check_caller("cudaEventDestroy"))
        return error;
    if (!find_event(handle, "cudaEventDestroy"))
        return cudaErrorInvalidResourceHandle;
    std::lock_guard lock(runtime().mutex);
    runtime().events.erase(handle);
    delete handle;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event_handle, cudaStream_t stream_handle) {
    if (const cudaError_t status = enter_call("cudaEventRecord"))
        return status;
    const auto stream = find_stream(stream_handle, "cudaEventRecord");
    const auto event = find_event(event_handle, "cudaEventRecord");
    if (!stream || !event)
        return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = order_before(*stream, "cudaEventRecord"))
        return error;
    const auto mark = note_mark(*stream);
    const auto recording = mark ? nullptr : record(stream, event->room);
    std::lock_guard lock(runtime().mutex);
    if (runtime().events.contains(event_handle)) {
        event_handle->last = recording;
        event_handle->mark = mark;
    }
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    if (const cudaError_t status = enter_call("cudaEventSynchronize"))
        return status;
    const auto event = find_event(handle, "cudaEventSynchronize");
    if (!event)
        return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = refuse_captured_event(event->mark, "cudaEventSynchronize"))
        return error;
    if (event->last)
        event->last->stream->synchronize(event->last->ticket);
    host_has_synchronised();
    return device_status();
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    if (const cudaError_t status = enter_call("cudaEventQuery"))
        return status;
    const auto event = find_event(handle, "cudaEventQuery");
    if (!event)
        return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = refuse_captured_event(event->mark, "cudaEventQuery"))
        return error;
    if (const cudaError_t error = check_safe("cudaEventQuery"))
        return error;
    if (event->last && !event->last->stream->ask(event->last->ticket)) {
        check_time_limits();
        return not_ready();
    }
    host_has_synchronised();
    return device_status();
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    if (const cudaError_t status = enter_call("cudaEventElapsedTime"))
        return status;
    const auto first = find_event(start, "cudaEventElapsedTime");
    const auto last = find_event(end, "cudaEventElapsedTime");
    if (!first || !last)
        return cudaErrorInvalidResourceHandle;
    for (const auto& mark : {first->mark, last->mark})
        if (const cudaError_t error = refuse_captured_event(mark, "cudaEventElapsedTime"))
            return error;
    if (!first->has_time || !last->has_time || !first->last || !last->last)
        return call_failed(cudaErrorInvalidResourceHandle,
                           "cudaEventElapsedTime needs two events that were recorded, and created "
                           "without cudaEventDisableTiming");
    if (!first->last->is_done() || !last->last->is_done())
        return not_ready();
    *milliseconds =
        std::chrono::duration<float, std::milli>(last->last->time - first->last->time).count();
    return cudaSuccess;
}
