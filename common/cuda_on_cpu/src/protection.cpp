#include "protection.hpp"

#include <sys/mman.h>

#include <atomic>

#include "cuda_on_cpu/settings.hpp"

namespace cuda_on_cpu {
namespace {

// -1 where the processor or the kernel has no protection keys. A new key is closed for every thread
// that does not open it.
int device_key() {
    static const int key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    return key;
}

// The number of threads that run device code, in this and every other stream. Relaxed: a count
// orders no kernels, and ThreadSanitizer must not think so.
std::atomic<int> device_threads{0};

}  // namespace

HostGuard host_guard() {
    // Decided once: pages that were closed must be opened again, whatever the settings say then.
    static const HostGuard guard = device_key() >= 0   ? HostGuard::protection_keys
                                   : settings().strict ? HostGuard::page_protection
                                                       : HostGuard::none;
    return guard;
}

DeviceAccess::DeviceAccess() {
    device_threads.fetch_add(1, std::memory_order_relaxed);
    if (device_key() >= 0) {
        rights_before_ = pkey_get(device_key());
        pkey_set(device_key(), 0);
    }
}

DeviceAccess::~DeviceAccess() {
    if (device_key() >= 0)
        pkey_set(device_key(), static_cast<unsigned int>(rights_before_));
    device_threads.fetch_sub(1, std::memory_order_relaxed);
}

void DeviceAccess::restore_after_signal() {
    if (device_key() >= 0)
        pkey_set(device_key(), 0);
}

bool device_code_runs() {
    return device_threads.load(std::memory_order_relaxed) > 0;
}

void tag_device_pages(std::byte* begin, std::size_t bytes) {
    if (device_key() >= 0)
        pkey_mprotect(begin, bytes, PROT_READ | PROT_WRITE, device_key());
}

}  // namespace cuda_on_cpu
