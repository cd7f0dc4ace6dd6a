#pragma once
// Failures, kept where CUDA keeps them: per host thread for a call, for good for the device.
#include <atomic>
#include <string>

#include "cuda_on_cpu/types.hpp"

namespace cuda_on_cpu {

// "tests/a.cu:12"
std::string to_string(const Where& where);

// A call failed: this thread's last error is now `code`, and cudaGetErrorString(code) adds
// `diagnosis`.
cudaError_t call_failed(cudaError_t code, std::string diagnosis);

// A query found work that is not done. That is an answer and no failure, but as on a GPU it stays
// as this thread's last error until cudaGetLastError clears it. Returns cudaErrorNotReady.
cudaError_t not_ready();

// A kernel failed: as on a GPU the device is lost, and every later call reports it, until
// cudaDeviceReset. The first failure is the one that is kept.
void device_failed(cudaError_t code, std::string diagnosis);
inline std::atomic<bool> device_lost{false};
inline bool device_is_lost() {
    return device_lost.load(std::memory_order_relaxed);
}
void forget_device_failure();

// cudaSuccess, or the device's failure as this call's own.
cudaError_t device_status();

// At exit: prints what went wrong and was never asked for, so that an ignored return code is not
// silence. True if a kernel failed and nobody noticed.
bool print_unread_diagnoses();

}  // namespace cuda_on_cpu
