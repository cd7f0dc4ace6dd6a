#pragma once
// Who may touch device memory: threads that run device code. Memory protection keys give each
// thread its own rights (35 ns a change). Where the processor has none, strict mode keeps the pages
// themselves closed: the first touch while device code runs opens a window of them (faults.cpp,
// memory.cpp), and the host's next synchronisation closes what was opened. It sees less: while any
// thread runs device code, and from a launch to the next synchronisation, the host may touch what
// kernels touch.
#include <cstddef>

namespace cuda_on_cpu {

enum class HostGuard { protection_keys, page_protection, none };
HostGuard host_guard();

// While one lives, this thread may touch device memory.
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

// Returns whether any thread does.
bool device_code_runs();

// Puts freshly mapped device pages under the protection key, where there is one.
void tag_device_pages(std::byte* begin, std::size_t bytes);

}  // namespace cuda_on_cpu
