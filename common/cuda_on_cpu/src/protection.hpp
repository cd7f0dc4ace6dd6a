#pragma once
// Who may touch device memory: threads that run device code. Memory protection keys give each
// thread its own rights (35 ns a change); where the processor has none, strict mode closes the
// pages themselves while no device code runs, which costs system calls and sees less.
#include <cstddef>

namespace cuda_on_cpu {

enum class HostGuard { protection_keys, page_protection, none };
HostGuard host_guard();

// While one lives, this thread may touch device memory. Made before the registry of allocations is
// locked (memory.cpp), never after.
class DeviceAccess {
  public:
    DeviceAccess();
    ~DeviceAccess();
    DeviceAccess(const DeviceAccess&) = delete;
    DeviceAccess& operator=(const DeviceAccess&) = delete;

    // The system hands every signal handler its own rights; whoever jumps out of one calls this.
    static void restore_after_signal();

  private:
    int rights_before_ = 0;
};

// Puts freshly mapped device pages under the protection key, where there is one.
void tag_device_pages(std::byte* begin, std::size_t bytes);

// For page_protection: opens or closes all pages of live device memory (memory.cpp knows them).
void set_all_device_pages(bool open);

}  // namespace cuda_on_cpu
