#pragma once
// Device and pinned memory: where every byte came from, so that a wrong one can be named.
//
// Each allocation has pages of its own between two closed guard pages, and ends where its last page
// ends (CUDA aligns to 256 bytes, so fewer than 256 bytes of padding follow it):
//
//     | closed page | front red zone ... | data ... | padding | closed page |
//
// A kernel that runs past the end meets the padding, which is checked, or the closed page, which
// faults at once. Freed addresses stay closed and are not reused for a long while, so a stale
// pointer faults too. Device memory lives in one memfd per process, which other processes map
// through /proc/PID/fd: when the process ends, however it ends, the memory is gone.
#include <cstddef>
#include <optional>
#include <string>

#include "cuda_on_cpu/types.hpp"

namespace cuda_on_cpu {

enum class MemoryKind { device, pinned, peer };

struct Allocation {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    MemoryKind kind = MemoryKind::device;
    int device = 0;
    Where allocated;
    bool is_freed = false;
    Where freed;
    std::byte* pages = nullptr;  // the pages it has, a closed one on either side
    std::size_t page_bytes = 0;
    long file_offset = 0;    // of `pages` in the process's memfd (device and strict pinned memory)
    bool is_shared = false;  // with other processes, which map the same part of the memfd
    std::byte* alias = nullptr;  // the same bytes at an address never closed, where `pages` may be
};

cudaError_t allocate(void** pointer, std::size_t bytes, MemoryKind kind, const char* call,
                     Where where);
cudaError_t release(void* pointer, MemoryKind kind, const char* call, Where where);
void release_everything(Where where);  // cudaDeviceReset

std::size_t live_device_bytes();
std::size_t total_device_bytes();

// The live allocation that holds `address` (or ends at it); nothing if there is none.
std::optional<Allocation> find_allocation(const void* address);

// Returns whether `address` lies in or beside memory that CUDA gave, freed or not.
bool is_near_allocation(const void* address);

// "12 bytes past the end of the 4000 bytes that cudaMalloc at a.cu:12 gave"; says so if it was
// freed, or is host memory that CUDA never saw. For signal handlers too: gives up rather than wait
// for a lock.
std::string describe_address(const void* address);

// Where pages are what keeps the host off (protection.hpp). For the fault handler: opens those of
// live device memory around `address`; false if there are none.
bool open_device_pages(const void* address);
// Closes what was opened, unless device code runs. Called where the host has waited for it.
void close_device_pages();

// The red zones of all live device allocations. A damaged one is named once: text, or empty.
std::string find_damaged_red_zone();

// Text for the allocations that are still live, one line each; empty if there are none.
std::string leak_report();

// Strict mode: host memory of an asynchronous copy is closed to the host (for reading too, if the
// copy writes it) until the host has synchronised.
void close_for_copy(void* host_pointer, std::size_t bytes, bool copy_writes, const void* stream,
                    unsigned long ticket, Where where);
// Reopens the ranges of copies that `is_done(stream, ticket)`: called when the host has
// synchronised.
void reopen_finished_copies(bool (*is_done)(const void* stream, unsigned long ticket));
// For the fault handler: what a host's touch of `address` disturbed, or empty.
std::string describe_pending_copy(const void* address, bool is_write);
// For the fault handler: a kernel, or the host beside the buffer in flight, touched a page that was
// closed for a copy. Opens it; false if it is none of pinned memory.
bool reopen_page(const void* address);
// Where the runtime itself reaches pinned memory, closed or not.
void* runtime_address(void* pointer);

}  // namespace cuda_on_cpu
