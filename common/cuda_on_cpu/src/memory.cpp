#include "memory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "cuda_on_cpu/parts.hpp"
#include "cuda_on_cpu/runtime_api.hpp"
#include "cuda_on_cpu/settings.hpp"
#include "errors.hpp"
#include "fiber.hpp"
#include "protection.hpp"
#include "runtime.hpp"
#include "tenants.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::size_t alignment = 256;          // of cudaMalloc
constexpr std::size_t red_zone = 256;           // checked bytes before an allocation
constexpr std::size_t remembered_frees = 4096;  // freed ranges that stay closed and named
constexpr std::size_t window_bytes = 1 << 20;   // bytes that a touch opens
constexpr std::size_t windows = 1024;           // open at a time
constexpr std::size_t max_kept = 64 << 20;      // bytes of the file kept for the next allocations
constexpr int poison = 0xff;  // NaN in every floating-point format, -1 in every integer

struct PendingCopy {
    std::byte* begin;
    std::size_t bytes;
    bool copy_writes;
    const void* stream;
    unsigned long ticket;
    Where where;
};

struct Pages {
    std::byte* begin;
    std::size_t bytes;
};

// A part of an allocation, as name_part was told of it.
struct Part {
    std::size_t bytes, room;
    Where where;
    std::byte* zone;  // where the runtime itself finds it, closed to others or not
};

struct Memory {
    std::mutex mutex;
    std::map<const std::byte*, Allocation> allocations;  // by first page, freed ones too
    std::deque<const std::byte*> freed;                  // oldest first
    std::vector<const Allocation*> on_device;  // those of device memory that are not freed: each
                                               // kernel's end looks at their red zones
    std::map<const std::byte*, Part> parts;    // by first byte
    std::vector<PendingCopy> pending;
    // Windows of device memory, opened since the host last synchronised. An array: a signal handler
    // fills it, and must not allocate.
    std::array<Pages, windows> opened;
    std::size_t opened_count = 0;
    std::size_t live_device_bytes = 0;
    int file = -1;
    long file_bytes = 0;
    // In strict mode: parts of the file that were freed and still have their pages, by size. A new
    // allocation is filled at once, and most of the time that takes is the system's, for new pages.
    std::multimap<std::size_t, long> kept;
    std::size_t kept_bytes = 0;
};

Memory& memory() {
    static auto* instance = new Memory;
    return *instance;
}

std::size_t bytes_of_page() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}
std::size_t round_up(std::size_t value, std::size_t unit) {
    return (value + unit - 1) / unit * unit;
}
std::byte* page_of(const void* address) {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    return reinterpret_cast<std::byte*>(value / bytes_of_page() * bytes_of_page());
}

const char* call_name(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::device:
            return "cudaMalloc";
        case MemoryKind::pinned:
            return "cudaMallocHost";
        case MemoryKind::peer:
            return "cudaIpcOpenMemHandle";
    }
    return "";
}

std::string allocation_name(const Allocation& allocation) {
    return "the " + std::to_string(allocation.bytes) + " bytes that " + call_name(allocation.kind) +
           " at " + to_string(allocation.allocated) + " gave";
}

// The number of pages to leave free before the next mapping, out of colours. The system's own
// places are often multiples of 64 MiB apart. But AMD's processors look for a line in their first
// cache by a hash of address bits 12 to 27: of two arrays that are equal in those, each access
// throws the other's line out, and a kernel that adds them takes four times as long. ("Take A Way",
// AsiaCCS 2020, has the hash.)
constexpr std::size_t colours = 64;
std::size_t next_colour() {
    static std::atomic<std::size_t> mappings{0};
    return mappings++ * 11 % colours;
}

// Maps a part of `file` between two closed pages; nullptr if there is no room.
std::byte* map_between_guards(int file, long offset, std::size_t bytes, int protection) {
    const std::size_t before = next_colour() * bytes_of_page();
    const std::size_t behind = colours * bytes_of_page() - before;
    const std::size_t guarded = bytes + 2 * bytes_of_page();
    void* place = mmap(nullptr, before + guarded + behind, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        return nullptr;
    std::byte* room = static_cast<std::byte*>(place) + before;
    munmap(room + guarded, behind);
    if (before > 0)
        munmap(place, before);
    std::byte* pages = room + bytes_of_page();
    // Strict mode fills all of it at once, so it gets all its pages at once, too.
    const int all_at_once = settings().strict && protection != PROT_NONE ? MAP_POPULATE : 0;
    return mmap(pages, bytes, protection, MAP_SHARED | MAP_FIXED | all_at_once, file, offset) ==
                   MAP_FAILED
               ? nullptr
               : pages;
}

// Takes `bytes` of the process's memfd: a part that was freed and kept, or more of it. Other parts
// that were freed have become holes, and their offsets are never reused.
long take_of_file(Memory& all, std::size_t bytes) {
    if (const auto part = all.kept.extract(bytes); !part.empty()) {
        all.kept_bytes -= bytes;
        return part.mapped();
    }
    if (all.file < 0)
        all.file = memfd_create("device memory", MFD_CLOEXEC);
    const long offset = all.file_bytes;
    if (all.file < 0 || ftruncate(all.file, offset + static_cast<long>(bytes)) != 0)
        return -1;
    all.file_bytes += static_cast<long>(bytes);
    return offset;
}

// The address at which the runtime itself finds `a.begin`, closed to others or not.
std::byte* runtime_begin(const Allocation& a) {
    return a.alias == nullptr ? a.begin : a.alias + (a.begin - a.pages);
}

struct RedZones {
    std::byte* front;
    std::size_t front_bytes;
    std::byte* back;
    std::size_t back_bytes;
};
RedZones red_zones(const Allocation& a) {
    const auto before = static_cast<std::size_t>(a.begin - a.pages);
    const std::size_t front = std::min(before, red_zone);
    std::byte* begin = runtime_begin(a);
    return {begin - front, front, begin + a.bytes, a.page_bytes - before - a.bytes};
}

Allocation* find_locked(Memory& all, const void* address) {
    const auto* byte = static_cast<const std::byte*>(address);
    auto next = all.allocations.upper_bound(byte + bytes_of_page());
    if (next == all.allocations.begin())
        return nullptr;
    Allocation& allocation = std::prev(next)->second;
    const bool near = byte >= allocation.pages - bytes_of_page() &&
                      byte < allocation.pages + allocation.page_bytes + bytes_of_page();
    return near ? &allocation : nullptr;
}

// Maps the pages of a new allocation from its place in `file`; false if the system has no room.
bool map_pages(Allocation& a, int file) {
    const bool is_guarded =
        a.kind != MemoryKind::pinned && host_guard() == HostGuard::page_protection;
    const int open = PROT_READ | PROT_WRITE;
    a.pages = map_between_guards(file, a.file_offset, a.page_bytes, is_guarded ? PROT_NONE : open);
    if (is_guarded || (a.kind == MemoryKind::pinned && settings().strict)) {
        a.alias = map_between_guards(file, a.file_offset, a.page_bytes, open);
        if (a.alias == nullptr)
            return false;
    }
    return a.pages != nullptr;
}

// The bytes of a zone that is intact. They come from each place's address: a kernel that copies
// what follows one array to where another one ends leaves different bytes. The top bit of each is
// set: a small number that a kernel writes there differs in its first byte already.
class KnownBytes {
  public:
    // For a zone of at most `red_zone` bytes.
    explicit KnownBytes(const std::byte* zone) {
        const auto address = reinterpret_cast<std::uintptr_t>(zone);
        offset_ = address % sizeof(std::uint64_t);
        for (std::size_t i = 0; i < std::size(words_); i++) {
            const std::uint64_t word =
                (address / 8 + i) * 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio
            words_[i] = (word ^ word >> 32) | 0x8080808080808080u;
        }
    }
    const std::byte* data() const { return reinterpret_cast<const std::byte*>(words_) + offset_; }

  private:
    std::size_t offset_;
    std::uint64_t words_[red_zone / sizeof(std::uint64_t) + 1];
};

void fill_zone(std::byte* zone, std::size_t bytes) {
    std::memcpy(zone, KnownBytes(zone).data(), bytes);
}

void fill_zones(const RedZones& zones) {
    fill_zone(zones.front, zones.front_bytes);
    fill_zone(zones.back, zones.back_bytes);
}

void fill_fresh(const Allocation& a) {
    fill_zones(red_zones(a));
    if (settings().strict)
        std::memset(runtime_begin(a), poison, a.bytes);
}

void close_windows(Memory& all) {
    for (std::size_t i = 0; i < all.opened_count; i++)
        mprotect(all.opened[i].begin, all.opened[i].bytes, PROT_NONE);
    all.opened_count = 0;
}

void close_pages(Memory& all, Allocation& a) {
    mmap(a.pages, a.page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
    if (a.alias != nullptr)
        munmap(a.alias - bytes_of_page(), a.page_bytes + 2 * bytes_of_page());
    if (a.kind == MemoryKind::peer)
        return;
    if (settings().strict && !a.is_shared && all.kept_bytes + a.page_bytes <= max_kept) {
        all.kept.emplace(a.page_bytes, a.file_offset);
        all.kept_bytes += a.page_bytes;
        return;
    }
    fallocate(all.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, a.file_offset,
              static_cast<long>(a.page_bytes));
}

void forget_oldest_free(Memory& all) {
    const auto oldest = all.allocations.find(all.freed.front());
    munmap(oldest->second.pages - bytes_of_page(), oldest->second.page_bytes + 2 * bytes_of_page());
    all.allocations.erase(oldest);
    all.freed.pop_front();
}

// Adds `bytes` to what the process holds of the device's memory; false if there is no room.
bool count_bytes(Memory& all, long long bytes) {
    const long long held = static_cast<long long>(all.live_device_bytes) + bytes;
    if (bytes > 0 && static_cast<std::size_t>(held) > total_device_bytes())
        return false;
    if (has_tenants() && !hold_bytes(bytes, total_device_bytes()))
        return false;
    all.live_device_bytes = static_cast<std::size_t>(held);
    return true;
}

void mark_freed(Memory& all, Allocation& a, Where where) {
    std::erase_if(all.pending, [&](const PendingCopy& copy) {
        return copy.begin >= a.begin && copy.begin < a.begin + a.bytes;
    });
    close_windows(all);
    all.parts.erase(all.parts.lower_bound(a.begin), all.parts.lower_bound(a.begin + a.bytes));
    if (a.kind == MemoryKind::device) {
        count_bytes(all, -static_cast<long long>(a.bytes));
        std::erase(all.on_device, &a);
    }
    close_pages(all, a);
    a.is_freed = true;
    a.freed = where;
    all.freed.push_back(a.pages);
    if (all.freed.size() > remembered_frees)
        forget_oldest_free(all);
}

void add(Memory& all, const Allocation& a) {
    std::lock_guard lock(all.mutex);
    Allocation& added = all.allocations[a.pages] = a;  // whose place is the same until it is erased
    if (added.kind == MemoryKind::device)
        all.on_device.push_back(&added);
}

bool is_whole(const std::byte* zone, std::size_t bytes) {
    return bytes == 0 || std::memcmp(zone, KnownBytes(zone).data(), bytes) == 0;
}

// Returns the first byte of the zone that was written, or its end.
const std::byte* first_damage(const std::byte* zone, std::size_t bytes) {
    return std::mismatch(zone, zone + bytes, KnownBytes(zone).data()).first;
}

std::string damage_of(const Allocation& a) {
    const RedZones zones = red_zones(a);
    if (is_whole(zones.front, zones.front_bytes) && is_whole(zones.back, zones.back_bytes))
        return "";
    const std::byte* front = first_damage(zones.front, zones.front_bytes);
    const std::byte* back = first_damage(zones.back, zones.back_bytes);
    const std::string text =
        back != zones.back + zones.back_bytes
            ? "wrote " + std::to_string(back - zones.back) + " bytes past the end of "
            : "wrote " + std::to_string(zones.front + zones.front_bytes - front) +
                  " bytes before the start of ";
    fill_zones(zones);
    return text + allocation_name(a);
}

std::string part_name(const Part& part) {
    return "the " + std::to_string(part.bytes) + " bytes that " + to_string(part.where) +
           " was given";
}

std::string damage_of(const Part& part) {
    if (is_whole(part.zone, zone_behind_part))
        return "";
    const std::byte* damage = first_damage(part.zone, zone_behind_part);
    const auto past = part.room - part.bytes + static_cast<std::size_t>(damage - part.zone);
    fill_zone(part.zone, zone_behind_part);
    return "wrote " + std::to_string(past) + " bytes past the end of " + part_name(part);
}

}  // namespace

// ---- Parts of allocations

void name_part(void* begin, std::size_t bytes, std::size_t room, Where where) {
    Memory& all = memory();
    DeviceAccess access;  // for the zone
    std::lock_guard lock(all.mutex);
    const auto* first = static_cast<const std::byte*>(begin);
    const Allocation* a = find_locked(all, first);
    if (a == nullptr || a->is_freed)
        return;
    std::byte* zone = runtime_begin(*a) + (first - a->begin) + room;
    if (!all.parts.contains(first))
        fill_zone(zone, zone_behind_part);
    all.parts.insert_or_assign(first, Part{bytes, room, where, zone});
}

// ---- Allocating and freeing

cudaError_t allocate(void** pointer, std::size_t bytes, MemoryKind kind, const char* call,
                     Where where) {
    *pointer = nullptr;
    if (bytes == 0)
        return cudaSuccess;
    Allocation a;
    a.bytes = bytes;
    a.kind = kind;
    a.allocated = where;
    cudaGetDevice(&a.device);
    Memory& all = memory();
    {
        std::lock_guard lock(all.mutex);
        const bool is_counted = kind == MemoryKind::device;
        const bool fits = !is_counted || count_bytes(all, static_cast<long long>(bytes));
        a.page_bytes = fits ? round_up(round_up(bytes, alignment), bytes_of_page()) : 0;
        a.file_offset = fits ? take_of_file(all, a.page_bytes) : -1;
        if (a.file_offset < 0 || !map_pages(a, all.file)) {
            const std::string reason =
                fits ? ", but the system gives no more (" + std::string(std::strerror(errno)) + ")"
                     : "";
            if (fits && is_counted)
                count_bytes(all, -static_cast<long long>(bytes));
            return call_failed(
                cudaErrorMemoryAllocation,
                std::string(call) + " at " + to_string(where) + " asked for " +
                    std::to_string(bytes) + " bytes; " +
                    std::to_string(all.live_device_bytes + bytes_of_other_tenants()) + " of " +
                    std::to_string(total_device_bytes()) + " are in use" + reason);
        }
        a.begin = a.pages + a.page_bytes - round_up(bytes, alignment);
    }
    fill_fresh(a);
    if (kind == MemoryKind::device)
        tag_device_pages(a.pages, a.page_bytes);
    add(all, a);
    *pointer = a.begin;
    return cudaSuccess;
}

cudaError_t release(void* pointer, MemoryKind kind, const char* call, Where where) {
    if (pointer == nullptr)
        return cudaSuccess;
    const std::string caller = std::string(call) + " at " + to_string(where);
    Memory& all = memory();
    DeviceAccess access;  // for its red zones
    std::lock_guard lock(all.mutex);
    Allocation* a = find_locked(all, pointer);
    if (a == nullptr)
        return call_failed(cudaErrorInvalidValue,
                           caller + " was given an address that no allocation of CUDA's holds");
    if (a->is_freed)
        return call_failed(cudaErrorInvalidValue, caller + " frees a second time " +
                                                      allocation_name(*a) + " (freed before at " +
                                                      to_string(a->freed) + ")");
    if (a->kind != kind)
        return call_failed(cudaErrorInvalidValue,
                           caller + " cannot free " + allocation_name(*a) + "; use " +
                               (a->kind == MemoryKind::device   ? "cudaFree"
                                : a->kind == MemoryKind::pinned ? "cudaFreeHost"
                                                                : "cudaIpcCloseMemHandle"));
    if (a->begin != pointer)
        return call_failed(cudaErrorInvalidValue, caller + " was given an address inside " +
                                                      allocation_name(*a) +
                                                      "; free it by its first byte");
    const std::string damage = kind == MemoryKind::device ? damage_of(*a) : "";
    mark_freed(all, *a, where);
    if (!damage.empty()) {
        device_failed(cudaErrorIllegalAddress,
                      "a kernel " + damage + " (noticed by " + caller + ")");
        return device_status();
    }
    return cudaSuccess;
}

void release_everything(Where where) {
    Memory& all = memory();
    std::lock_guard lock(all.mutex);
    std::vector<Allocation*> live;
    for (auto& [pages, allocation] : all.allocations)
        if (!allocation.is_freed)
            live.push_back(&allocation);
    for (Allocation* allocation : live)
        mark_freed(all, *allocation, where);
}

std::size_t live_device_bytes() {
    std::lock_guard lock(memory().mutex);
    return memory().live_device_bytes;
}

std::size_t total_device_bytes() {
    static const std::size_t of_host =
        static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * bytes_of_page();
    const double chosen_mib = settings().memory_mib;
    return chosen_mib > 0 ? static_cast<std::size_t>(chosen_mib * (1 << 20)) : of_host;
}

// ---- Naming addresses

std::optional<Allocation> find_allocation(const void* address) {
    std::lock_guard lock(memory().mutex);
    const Allocation* a = find_locked(memory(), address);
    const auto* byte = static_cast<const std::byte*>(address);
    if (a == nullptr || a->is_freed || byte < a->begin || byte > a->begin + a->bytes)
        return std::nullopt;
    return *a;
}

namespace {
// In a signal handler the lock may be held by the very thread that was interrupted: gives up in the
// end.
std::unique_lock<std::mutex> lock_patiently(std::mutex& mutex) {
    std::unique_lock lock(mutex, std::defer_lock);
    for (int attempt = 0; attempt < 100'000 && !lock.try_lock(); attempt++)
        usleep(100);
    return lock;
}

// Returns "byte 8 of the 384 bytes that a.cu:7 was given, which is ", or "" if no part has it.
std::string position_in_part(const Memory& all, const std::byte* byte) {
    const auto next = all.parts.upper_bound(byte);
    if (next == all.parts.begin())
        return "";
    const auto& [begin, part] = *std::prev(next);
    const auto offset = static_cast<std::size_t>(byte - begin);
    return offset < part.bytes
               ? "byte " + std::to_string(offset) + " of " + part_name(part) + ", which is "
               : "";
}
}  // namespace

bool is_near_allocation(const void* address) {
    const auto lock = lock_patiently(memory().mutex);
    return lock.owns_lock() && find_locked(memory(), address) != nullptr;
}

std::string describe_address(const void* address) {
    Memory& all = memory();
    const auto lock = lock_patiently(all.mutex);
    if (!lock.owns_lock())
        return "an address that could not be looked up";
    if (reinterpret_cast<std::uintptr_t>(address) < bytes_of_page())
        return "a null pointer";
    const Allocation* a = find_locked(all, address);
    if (a == nullptr)
        return "an address that no allocation of CUDA's holds (host memory, or a wild pointer)";
    const auto* byte = static_cast<const std::byte*>(address);
    std::string position;
    if (byte >= a->begin + a->bytes)
        position = std::to_string(byte - (a->begin + a->bytes)) + " bytes past the end of ";
    else if (byte < a->begin)
        position = std::to_string(a->begin - byte) + " bytes before the start of ";
    else
        position = position_in_part(all, byte) + "byte " + std::to_string(byte - a->begin) + " of ";
    return position + allocation_name(*a) +
           (a->is_freed ? ", which was freed at " + to_string(a->freed) : "");
}

bool open_device_pages(const void* address) {
    const Unseen bookkeeping;  // called amidst a kernel
    Memory& all = memory();
    const auto lock = lock_patiently(all.mutex);
    const auto* byte = static_cast<const std::byte*>(address);
    const Allocation* a = lock.owns_lock() ? find_locked(all, address) : nullptr;
    if (a == nullptr || a->is_freed || a->kind == MemoryKind::pinned || byte < a->pages ||
        byte >= a->pages + a->page_bytes)
        return false;
    const auto before = static_cast<std::size_t>(byte - a->pages) / window_bytes * window_bytes;
    const Pages window{a->pages + before, std::min(window_bytes, a->page_bytes - before)};
    if (all.opened_count == windows)
        close_windows(all);  // who still needs one opens it again
    all.opened[all.opened_count++] = window;
    return mprotect(window.begin, window.bytes, PROT_READ | PROT_WRITE) == 0;
}

void close_device_pages() {
    if (host_guard() != HostGuard::page_protection)
        return;
    Memory& all = memory();
    std::lock_guard lock(all.mutex);
    if (!device_code_runs())  // it would open them again
        close_windows(all);
}

std::string find_damaged_red_zone() {
    Memory& all = memory();
    std::lock_guard lock(all.mutex);
    for (const Allocation* allocation : all.on_device) {
        const std::string damage = damage_of(*allocation);
        if (!damage.empty())
            return damage;
    }
    for (const auto& [begin, part] : all.parts) {
        const std::string damage = damage_of(part);
        if (!damage.empty())
            return damage;
    }
    return "";
}

std::string leak_report() {
    Memory& all = memory();
    std::lock_guard lock(all.mutex);
    std::string report;
    for (const auto& [pages, allocation] : all.allocations)
        if (!allocation.is_freed)
            report += "cuda_on_cpu: never freed: " + allocation_name(allocation) + "\n";
    return report;
}

// ---- Copies in flight

namespace {

// Sets who may touch the pages of a copy's buffer.
void protect(const PendingCopy& copy, int protection) {
    std::byte* first = page_of(copy.begin);
    std::byte* last = page_of(copy.begin + copy.bytes - 1);
    mprotect(first, static_cast<std::size_t>(last - first) + bytes_of_page(), protection);
}

void close(const PendingCopy& copy) {
    protect(copy, copy.copy_writes ? PROT_NONE : PROT_READ);
}

}  // namespace

void close_for_copy(void* host_pointer, std::size_t bytes, bool copy_writes, const void* stream,
                    unsigned long ticket, Where where) {
    auto* begin = static_cast<std::byte*>(host_pointer);
    std::lock_guard lock(memory().mutex);
    memory().pending.push_back({begin, bytes, copy_writes, stream, ticket, where});
    close(memory().pending.back());
}

void reopen_finished_copies(bool (*is_done)(const void* stream, unsigned long ticket)) {
    std::lock_guard lock(memory().mutex);
    auto& pending = memory().pending;
    const auto finished = std::stable_partition(
        pending.begin(), pending.end(),
        [&](const PendingCopy& copy) { return !is_done(copy.stream, copy.ticket); });
    if (finished == pending.end())
        return;
    for (auto copy = finished; copy != pending.end(); copy++)
        protect(*copy, PROT_READ | PROT_WRITE);
    pending.erase(finished, pending.end());
    // A page may hold two buffers: close again what another copy still needs.
    for (const PendingCopy& copy : pending)
        close(copy);
}

std::string describe_pending_copy(const void* address, bool is_write) {
    Memory& all = memory();
    const auto lock = lock_patiently(all.mutex);
    const auto* byte = static_cast<const std::byte*>(address);
    if (lock.owns_lock())
        for (const PendingCopy& copy : all.pending)
            if (byte >= copy.begin && byte < copy.begin + copy.bytes)
                return std::string("the host ") + (is_write ? "wrote" : "read") + " byte " +
                       std::to_string(byte - copy.begin) + " of a buffer that cudaMemcpyAsync at " +
                       to_string(copy.where) + (copy.copy_writes ? " writes" : " reads") +
                       ", before it synchronised with the stream: call cudaStreamSynchronize (or "
                       "wait for an event) first";
    return "";
}

bool reopen_page(const void* address) {
    const Unseen bookkeeping;  // called amidst a kernel
    Memory& all = memory();
    const auto lock = lock_patiently(all.mutex);
    if (!lock.owns_lock())
        return false;
    const std::byte* page = page_of(address);
    std::erase_if(all.pending, [&](const PendingCopy& copy) {
        const bool is_here =
            page >= page_of(copy.begin) && page <= page_of(copy.begin + copy.bytes - 1);
        if (is_here)
            protect(copy, PROT_READ | PROT_WRITE);
        return is_here;
    });
    // Another thread may have come first: then the page is open, too.
    const Allocation* a = find_locked(all, address);
    return a != nullptr && a->kind == MemoryKind::pinned && !a->is_freed && page >= a->pages &&
           page < a->pages + a->page_bytes;
}

void* runtime_address(void* pointer) {
    const std::optional<Allocation> a = find_allocation(pointer);
    if (!a || a->kind != MemoryKind::pinned || a->alias == nullptr)
        return pointer;
    return a->alias + (static_cast<std::byte*>(pointer) - a->pages);
}

// ---- Memory of another process

namespace {

// The content of a cudaIpcMemHandle_t.
struct Handle {
    char mark[8];
    int process;
    int file;
    long long started;  // the process's start time, since process numbers are reused
    long long file_offset;
    unsigned long long page_bytes;
    unsigned long long bytes;
    unsigned long long unused[2];
};
static_assert(sizeof(Handle) == sizeof(cudaIpcMemHandle_t));
constexpr char mark_byte[8] = "cudacpu";

// Field 22 of /proc/PID/stat, counted behind the name, which may hold spaces; 0 if there is no such
// process.
long long start_time(int process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos)
        return 0;
    std::istringstream fields(text.substr(name_end + 1));
    std::string field;
    for (int i = 3; i <= 22; i++)
        fields >> field;
    return std::atoll(field.c_str());
}

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer, Where where) {
    if (const cudaError_t status = enter_call("cudaIpcGetMemHandle"))
        return status;
    const std::optional<Allocation> a = find_allocation(pointer);
    if (!a || a->kind != MemoryKind::device || a->begin != pointer)
        return call_failed(cudaErrorInvalidValue,
                           "cudaIpcGetMemHandle at " + to_string(where) +
                               " needs the first byte of a cudaMalloc, and was given " +
                               describe_address(pointer));
    {
        std::lock_guard lock(memory().mutex);
        find_locked(memory(), pointer)->is_shared = true;
    }
    Handle content{};
    std::memcpy(content.mark, mark_byte, sizeof mark_byte);
    content.process = getpid();
    content.file = memory().file;
    content.started = start_time(content.process);
    content.file_offset = a->file_offset;
    content.page_bytes = a->page_bytes;
    content.bytes = a->bytes;
    std::memcpy(handle, &content, sizeof content);
    return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int,
                                 Where where) {
    if (const cudaError_t status = enter_call("cudaIpcOpenMemHandle"))
        return status;
    Handle content;
    std::memcpy(&content, &handle, sizeof content);
    const std::string caller = "cudaIpcOpenMemHandle at " + to_string(where);
    if (std::memcmp(content.mark, mark_byte, sizeof mark_byte) != 0)
        return call_failed(cudaErrorInvalidValue,
                           caller + " was given bytes that cudaIpcGetMemHandle did not make");
    if (content.process == getpid())
        return call_failed(cudaErrorInvalidValue,
                           caller + " opens a handle of its own process; use the pointer itself");
    const std::string owner = "process " + std::to_string(content.process);
    if (start_time(content.process) != content.started)
        return call_failed(cudaErrorInvalidValue, caller + ": " + owner + " has ended");
    const std::string path =
        "/proc/" + std::to_string(content.process) + "/fd/" + std::to_string(content.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0)
        return call_failed(
            errno == EACCES ? cudaErrorNotPermitted : cudaErrorInvalidValue,
            caller + ": memory of " + owner + " cannot be opened: " + strerror(errno));
    Allocation a;
    a.kind = MemoryKind::peer;
    a.allocated = where;
    a.bytes = content.bytes;
    a.page_bytes = content.page_bytes;
    a.file_offset = static_cast<long>(content.file_offset);
    const bool mapped = map_pages(a, file);
    close(file);
    if (!mapped)
        return call_failed(cudaErrorMemoryAllocation,
                           caller + ": no room to map " + std::to_string(a.bytes) + " bytes");
    a.begin = a.pages + a.page_bytes - round_up(a.bytes, alignment);
    tag_device_pages(a.pages, a.page_bytes);
    add(memory(), a);
    *pointer = a.begin;
    return cudaSuccess;
}
