#include "errors.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <utility>

#include "cuda_on_cpu/runtime_api.hpp"

namespace cuda_on_cpu {
namespace {

struct Failure {
    cudaError_t code = cudaSuccess;
    std::string diagnosis;
};

struct Errors {
    std::mutex mutex;
    Failure device;
    // Failures that no call has asked for yet: the first failed call, and the device's failure.
    std::string unread_call;
    std::string unread_device;
};

Errors& errors() {
    static auto* instance = new Errors;
    return *instance;
}

struct ThreadErrors {
    cudaError_t last = cudaSuccess;
    Failure failure;
    std::string text;  // what cudaGetErrorString returned last
};
thread_local ThreadErrors thread_errors;

struct Name {
    cudaError_t code;
    const char* name;
    const char* text;
};
constexpr Name names[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidDevicePointer, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled",
     "peer access has not been enabled"},
    {cudaErrorHardwareStackError, "cudaErrorHardwareStackError", "hardware stack error"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
};

const Name& entry_of(cudaError_t code) {
    static constexpr Name unknown = {cudaSuccess, "cudaErrorUnknown", "unknown error"};
    for (const Name& entry : names)
        if (entry.code == code)
            return entry;
    return unknown;
}

}  // namespace

std::string to_string(const Where& where) {
    return std::string(where.file_name()) + ":" + std::to_string(where.line());
}

cudaError_t call_failed(cudaError_t code, std::string diagnosis) {
    {
        std::lock_guard lock(errors().mutex);
        if (errors().unread_call.empty())
            errors().unread_call = diagnosis;
    }
    thread_errors.last = code;
    thread_errors.failure = {code, std::move(diagnosis)};
    return code;
}

cudaError_t not_ready() {
    thread_errors.last = cudaErrorNotReady;
    thread_errors.failure = {};
    return cudaErrorNotReady;
}

void device_failed(cudaError_t code, std::string diagnosis) {
    std::lock_guard lock(errors().mutex);
    if (errors().device.code != cudaSuccess)
        return;
    errors().unread_device = diagnosis;
    errors().device = {code, std::move(diagnosis)};
    device_lost = true;
}

void forget_device_failure() {
    std::lock_guard lock(errors().mutex);
    errors().device = {};
    device_lost = false;
}

cudaError_t device_status() {
    if (!device_is_lost())
        return cudaSuccess;
    std::lock_guard lock(errors().mutex);
    thread_errors.last = errors().device.code;
    thread_errors.failure = errors().device;
    return thread_errors.last;
}

bool print_unread_diagnoses() {
    std::lock_guard lock(errors().mutex);
    for (const std::string* text : {&errors().unread_call, &errors().unread_device})
        if (!text->empty())
            std::fprintf(stderr, "cuda_on_cpu: %s (this error was never read)\n", text->c_str());
    return !errors().unread_device.empty();
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

const char* cudaGetErrorName(cudaError_t error) {
    return entry_of(error).name;
}

const char* cudaGetErrorString(cudaError_t error) {
    const Failure& failure = thread_errors.failure;
    if (error == cudaSuccess || failure.code != error || failure.diagnosis.empty())
        return entry_of(error).text;
    std::lock_guard lock(errors().mutex);
    for (std::string* text : {&errors().unread_call, &errors().unread_device})
        if (*text == failure.diagnosis)
            text->clear();
    thread_errors.text = std::string(entry_of(error).text) + ": " + failure.diagnosis;
    return thread_errors.text.c_str();
}

cudaError_t cudaPeekAtLastError() {
    const cudaError_t status = device_status();
    return status != cudaSuccess ? status : thread_errors.last;
}

cudaError_t cudaGetLastError() {
    const cudaError_t error = cudaPeekAtLastError();
    thread_errors.last = cudaSuccess;
    return error;
}
