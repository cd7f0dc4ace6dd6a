// cudaMalloc and its kin, cudaMemcpy, cudaMemset: every range is checked against the allocation
// that it claims to lie in before anything is enqueued.
#include <atomic>
#include <cstring>
#include <optional>
#include <vector>

#include "capture.hpp"
#include "cuda_on_cpu/observe.hpp"
#include "cuda_on_cpu/settings.hpp"
#include "memory.hpp"
#include "protection.hpp"
#include "runtime.hpp"
#include "tenants.hpp"

namespace cuda_on_cpu {
namespace {

struct Copy final : Command {
    Copy(void* destination, const void* source, std::size_t bytes)
        : destination(destination), source(source), bytes(bytes) {}
    void run(Stream&) override {
        DeviceAccess access;
        std::memmove(destination, source, bytes);
    }
    void* destination;
    const void* source;
    std::size_t bytes;
};

// A copy from memory that is not pinned, in strict mode. It has staged what it copies: the call
// need not wait for the device, which comes to it late.
struct StagedCopy final : Command {
    StagedCopy(void* destination, const void* source, std::size_t bytes)
        : destination(destination),
          staged(static_cast<const std::byte*>(source),
                 static_cast<const std::byte*>(source) + bytes) {}
    void run(Stream& stream) override {
        stream.put_off();
        DeviceAccess access;
        std::memcpy(destination, staged.data(), staged.size());
    }
    void* destination;
    std::vector<std::byte> staged;
};

struct Fill final : Command {
    Fill(void* pointer, int value, std::size_t bytes)
        : pointer(pointer), value(value), bytes(bytes) {}
    void run(Stream&) override {
        DeviceAccess access;
        std::memset(pointer, value, bytes);
    }
    void* pointer;
    int value;
    std::size_t bytes;
};

bool is_device(const std::optional<Allocation>& a) {
    return a && a->kind != MemoryKind::pinned;
}

const char* kind_name(cudaMemcpyKind kind) {
    constexpr const char* names[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
                                     "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice",
                                     "cudaMemcpyDefault"};
    return names[kind];
}

// Checks that [pointer, pointer + bytes) lies in one allocation where CUDA knows the memory.
// `caller` begins the message: "cudaMemcpy at a.cu:12".
cudaError_t check_range(const std::string& caller, const char* role, const void* pointer,
                        std::size_t bytes) {
    const std::optional<Allocation> a = find_allocation(pointer);
    if (!a && pointer != nullptr && !is_near_allocation(pointer))
        return cudaSuccess;  // ordinary host memory: nobody knows how long it is
    if (!a)
        return call_failed(cudaErrorInvalidValue,
                           caller + ": the " + role + " is " + describe_address(pointer));
    const auto left =
        static_cast<std::size_t>(a->begin + a->bytes - static_cast<const std::byte*>(pointer));
    if (bytes <= left)
        return cudaSuccess;
    return call_failed(cudaErrorInvalidValue, caller + " of " + std::to_string(bytes) +
                                                  " bytes: the " + role + " has only " +
                                                  std::to_string(left) + " left from " +
                                                  describe_address(pointer));
}

cudaError_t check_copy(const std::string& caller, const void* destination, const void* source,
                       std::size_t bytes, cudaMemcpyKind kind) {
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return call_failed(cudaErrorInvalidMemcpyDirection,
                           caller + " was given a direction that is none of cudaMemcpyKind's");
    if (const cudaError_t error = check_range(caller, "destination", destination, bytes))
        return error;
    if (const cudaError_t error = check_range(caller, "source", source, bytes))
        return error;
    if (kind == cudaMemcpyDefault)
        return cudaSuccess;
    const bool to_device = is_device(find_allocation(destination));
    const bool from_device = is_device(find_allocation(source));
    const auto actual = static_cast<cudaMemcpyKind>((from_device ? 2 : 0) + (to_device ? 1 : 0));
    if (actual == kind)
        return cudaSuccess;
    return call_failed(cudaErrorInvalidMemcpyDirection,
                       caller + " says " + kind_name(kind) + ", but the source is " +
                           (from_device ? "device" : "host") + " memory and the destination is " +
                           (to_device ? "device" : "host") + " memory: " + kind_name(actual));
}

cudaError_t allocate_checked(void** pointer, std::size_t bytes, MemoryKind kind, const char* call,
                             Where where) {
    if (const cudaError_t status = enter_call(call))
        return status;
    const std::string caller = std::string(call) + " at " + to_string(where);
    if (const cudaError_t error = check_safe(caller))
        return error;
    if (const cudaError_t error = check_no_kernel_waits(caller, std::to_string(bytes) + " bytes"))
        return error;
    wait_inside_driver();
    return allocate(pointer, bytes, kind, call, where);
}

cudaError_t free_checked(void* pointer, MemoryKind kind, const char* call, Where where) {
    if (const cudaError_t status = enter_call(call))
        return status;
    if (pointer == nullptr)
        return cudaSuccess;
    const std::string caller = std::string(call) + " at " + to_string(where);
    if (const cudaError_t error = check_safe(caller))
        return error;
    if (const cudaError_t error = check_no_kernel_waits(caller, describe_address(pointer)))
        return error;
    wait_inside_driver();
    // Freeing waits for the work that may still use the memory, as on a GPU.
    for (const auto& stream : all_streams())
        stream->synchronize(stream->last_ticket());
    if (const cudaError_t status = device_status())
        return status;
    return release(pointer, kind, call, where);
}

// Plays a driver that stages the bytes only when the stream has done what it has to do, and keeps
// all other threads out until then ("the driver may synchronize with the stream and stage the copy
// into pinned memory": CUDA Runtime API, "API synchronization behavior").
void wait_before_staging(Stream& stream) {
    const DriverLock driver;
    stream.synchronize(stream.last_ticket());
}

// Refuses, on a played GPU, the process's first copy to memory that is not pinned while a kernel
// may wait. On an H200 it stood still beside such kernels, and kept all launches out.
cudaError_t check_first_copy(const std::string& caller) {
    static std::atomic<bool> was_made = false;
    if (was_made.exchange(true) || !plays_loading())
        return cudaSuccess;
    return check_no_kernel_waits(caller, "the process's first copy to memory that is not pinned",
                                 "make one before");
}

std::atomic<std::uint64_t> uploads{0};

struct PlacedCopy {
    std::shared_ptr<Stream> stream;
    Stream::Ticket ticket = 0;  // 0: it was captured
    // One end is host memory that is not pinned.
    bool is_from_pageable = false, is_to_pageable = false;
};

cudaError_t enqueue_copy(PlacedCopy* placed, const char* call, void* destination,
                         const void* source, std::size_t bytes, cudaMemcpyKind kind,
                         cudaStream_t handle, Where where) {
    if (const cudaError_t status = enter_call(call))
        return status;
    const std::string caller = std::string(call) + " at " + to_string(where);
    if (const cudaError_t error = check_copy(caller, destination, source, bytes, kind))
        return error;
    placed->stream = find_stream(handle, call);
    if (!placed->stream)
        return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = begin_work(*placed->stream, caller.c_str()))
        return error;
    void* to = runtime_address(destination);
    const void* from = runtime_address(const_cast<void*>(source));
    placed->is_from_pageable = !find_allocation(source);
    placed->is_to_pageable = !find_allocation(destination);
    if (placed->is_from_pageable || placed->is_to_pageable)
        if (const cudaError_t error = refuse_if_captured(
                *placed->stream, caller.c_str(),
                "and a graph copies to or from memory that is not pinned at each of its launches, "
                "when nobody may have it any more: use cudaMallocHost"))
            return error;
    if (placed->is_to_pageable)
        if (const cudaError_t error = check_first_copy(caller))
            return error;
    const bool is_upload = placed->is_from_pageable && !placed->is_to_pageable;
    const bool is_staged = settings().strict && is_upload;
    if (is_upload)
        uploads++;
    if (is_staged)
        wait_before_staging(*placed->stream);
    placed->ticket = place(*placed->stream, [&](void* memory) -> Command* {
        if (is_staged)
            return new (memory) StagedCopy(to, from, bytes);
        return new (memory) Copy(to, from, bytes);
    });
    return cudaSuccess;
}

// Waits until the copy is done, as far as CUDA promises it (CUDA Runtime API, "API synchronization
// behavior"). A copy from memory that is not pinned may still be under way: in strict mode it is. A
// call that waits for one to such memory may wait inside the driver: in strict mode it does.
cudaError_t finish_copy(const PlacedCopy& copy) {
    if (settings().strict && copy.is_from_pageable && !copy.is_to_pageable)
        return device_status();
    {
        std::optional<DriverLock> driver;
        if (copy.is_to_pageable)
            driver.emplace();
        copy.stream->synchronize(copy.ticket);
    }
    host_has_synchronised();
    return device_status();
}

}  // namespace

cudaError_t check_no_kernel_waits(const std::string& caller, const std::string& what,
                                  const std::string& advice) {
    if (!settings().strict)
        return cudaSuccess;
    const std::string kernel = unfinished_cooperative_kernel();
    if (kernel.empty())
        return cudaSuccess;
    return call_failed(
        cudaErrorNotPermitted,
        caller + " (" + what + ") while the cooperative " + kernel +
            " is in flight: on a GPU the call may wait for the kernel, and the kernel "
            "for a peer that never comes; " +
            advice);
}

cudaError_t check_stream_is_used(const Stream& stream, const char* call) {
    if (stream.last_ticket() > 0 || !plays_loading() || is_default_stream(stream))
        return cudaSuccess;
    return check_no_kernel_waits(
        call, "the first command of its stream",
        "let each stream carry out an event right after it is made, as ddp::Stream does");
}

std::uint64_t pageable_uploads() {
    return uploads.load();
}

bool plays_loading() {
    return settings().strict && settings().multiprocessors > 0;
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaMalloc(void** pointer, std::size_t bytes, Where where) {
    return allocate_checked(pointer, bytes, MemoryKind::device, "cudaMalloc", where);
}

cudaError_t cudaFree(void* pointer, Where where) {
    return free_checked(pointer, MemoryKind::device, "cudaFree", where);
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned int, Where where) {
    return allocate_checked(pointer, bytes, MemoryKind::pinned, "cudaHostAlloc", where);
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes, Where where) {
    return allocate_checked(pointer, bytes, MemoryKind::pinned, "cudaMallocHost", where);
}

cudaError_t cudaFreeHost(void* pointer, Where where) {
    return free_checked(pointer, MemoryKind::pinned, "cudaFreeHost", where);
}

cudaError_t cudaIpcCloseMemHandle(void* pointer, Where where) {
    return free_checked(pointer, MemoryKind::peer, "cudaIpcCloseMemHandle", where);
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned int) {
    const std::optional<Allocation> a = find_allocation(host_pointer);
    if (!a || a->kind != MemoryKind::pinned)
        return call_failed(cudaErrorInvalidValue,
                           "cudaHostGetDevicePointer needs memory of cudaMallocHost or "
                           "cudaHostAlloc, and was given " +
                               describe_address(host_pointer));
    *device_pointer = host_pointer;  // one address space, as on every 64-bit system
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
    *total_bytes = total_device_bytes();
    *free_bytes = *total_bytes - live_device_bytes() - bytes_of_other_tenants();
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    const std::optional<Allocation> a = find_allocation(pointer);
    void* address = const_cast<void*>(pointer);
    if (!a)
        *attributes = {cudaMemoryTypeUnregistered, -1, nullptr, address};
    else if (a->kind == MemoryKind::pinned)
        *attributes = {cudaMemoryTypeHost, a->device, address, address};
    else
        *attributes = {cudaMemoryTypeDevice, a->device, address, nullptr};
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void* destination, const void* source, std::size_t bytes,
                       cudaMemcpyKind kind, Where where) {
    if (bytes == 0)
        return enter_call("cudaMemcpy");
    PlacedCopy copy;
    if (const cudaError_t error =
            enqueue_copy(&copy, "cudaMemcpy", destination, source, bytes, kind, nullptr, where))
        return error;
    return finish_copy(copy);
}

cudaError_t cudaMemcpyAsync(void* destination, const void* source, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream, Where where) {
    if (bytes == 0)
        return enter_call("cudaMemcpyAsync");
    PlacedCopy copy;
    if (const cudaError_t error =
            enqueue_copy(&copy, "cudaMemcpyAsync", destination, source, bytes, kind, stream, where))
        return error;
    if (copy.is_from_pageable || copy.is_to_pageable)
        return finish_copy(copy);
    if (settings().strict && copy.ticket != 0) {
        if (!is_device(find_allocation(destination)))
            close_for_copy(destination, bytes, true, copy.stream.get(), copy.ticket, where);
        if (!is_device(find_allocation(source)))
            close_for_copy(const_cast<void*>(source), bytes, false, copy.stream.get(), copy.ticket,
                           where);
    }
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t handle,
                            Where where) {
    if (const cudaError_t status = enter_call("cudaMemset"))
        return status;
    if (bytes == 0)
        return cudaSuccess;
    const std::string caller = "cudaMemset at " + to_string(where);
    if (const cudaError_t error = check_range(caller, "range", pointer, bytes))
        return error;
    if (!find_allocation(pointer))
        return call_failed(cudaErrorInvalidValue,
                           caller + " was given " + describe_address(pointer));
    const auto stream = find_stream(handle, "cudaMemset");
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = begin_work(*stream, caller.c_str()))
        return error;
    void* address = runtime_address(pointer);
    place(*stream, [&](void* memory) { return new (memory) Fill(address, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes, Where where) {
    if (const cudaError_t error = cudaMemsetAsync(pointer, value, bytes, nullptr, where))
        return error;
    return cudaStreamSynchronize(nullptr);
}
