// Kernel launches: what a GPU would refuse is refused here, with the reason.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "capture.hpp"
#include "kernel_name.hpp"
#include "memory.hpp"
#include "runtime.hpp"

namespace cuda_on_cpu {
namespace {

std::string shape_text(const dim3& shape) {
    return "(" + std::to_string(shape.x) + "," + std::to_string(shape.y) + "," +
           std::to_string(shape.z) + ")";
}
using cuda_on_cpu::to_string;

std::uint64_t count(const dim3& shape) {
    return std::uint64_t{shape.x} * shape.y * shape.z;
}

// Returns what is wrong with the shape of a launch; empty if nothing is.
std::string refusal(const LaunchShape& shape) {
    if (count(shape.grid) == 0 || count(shape.block) == 0)
        return "a grid of " + shape_text(shape.grid) + " blocks of " + shape_text(shape.block) +
               " threads is empty; launch nothing when there is nothing to do";
    if (count(shape.block) > max_threads || shape.block.z > 64)
        return "a block of " + shape_text(shape.block) + " threads is too large; it may have " +
               std::to_string(max_threads) + ", 64 of them in z";
    if (shape.grid.x > 2147483647u || shape.grid.y > 65535 || shape.grid.z > 65535)
        return "a grid of " + shape_text(shape.grid) +
               " blocks is too large; it may have 2147483647, 65535 and 65535 in x, y and z";
    return "";
}

// Kernels that asked for more dynamic shared memory than every block may have.
struct LargerShared {
    std::mutex mutex;
    std::map<const void*, std::size_t> bytes;
};
LargerShared& larger_shared() {
    static auto* instance = new LargerShared;
    return *instance;
}

std::size_t shared_bytes_of(const void* kernel) {
    std::lock_guard lock(larger_shared().mutex);
    const auto asked = larger_shared().bytes.find(kernel);
    return asked == larger_shared().bytes.end() ? max_shared_bytes
                                                : std::max(max_shared_bytes, asked->second);
}

// Refuses the first launch of a kernel that must be loaded for it, while another one may wait.
cudaError_t check_loaded(const PreparedKernel& kernel) {
    if (!plays_loading())
        return cudaSuccess;
    const char* loading = std::getenv("CUDA_MODULE_LOADING");
    if (loading != nullptr && std::string_view(loading) == "EAGER")
        return cudaSuccess;
    static auto* loaded = new std::set<const void*>;
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    if (loaded->contains(kernel.function))
        return cudaSuccess;
    const cudaError_t status =
        check_no_kernel_waits(KernelRun(kernel, settings()).name(),
                              "its first launch, for which it must be loaded", "launch it before");
    if (status == cudaSuccess)
        loaded->insert(kernel.function);
    return status;
}

// Refuses, in strict mode, a kernel whose arguments hold the address of another device's memory
// that its own must not use, also within a structure. Addresses that it finds in memory are not
// seen.
cudaError_t check_peers(const PreparedKernel& kernel, std::size_t bytes, int device) {
    int devices = 1;
    cudaGetDeviceCount(&devices);
    if (!settings().strict || devices == 1)
        return cudaSuccess;
    const auto* begin = reinterpret_cast<const std::byte*>(&kernel);
    for (std::size_t i = sizeof(PreparedKernel); i + sizeof(void*) <= bytes; i += sizeof(void*)) {
        const void* word = nullptr;
        std::memcpy(&word, begin + i, sizeof word);
        const std::optional<Allocation> found = find_allocation(word);
        if (found && found->kind == MemoryKind::device && !has_peer_access(device, found->device))
            return call_failed(
                cudaErrorIllegalAddress,
                KernelRun(kernel, settings()).name() + ": device " + std::to_string(device) +
                    " has no access to device " + std::to_string(found->device) + ", where " +
                    describe_address(word) + " lies: call cudaDeviceEnablePeerAccess");
    }
    return cudaSuccess;
}

// Plays a host that is slower than its device, or loses its core at times.
void delay_host() {
    static std::atomic<std::uint32_t> launches = 0;
    const Settings& now = settings();
    const bool hiccups = now.hiccup_ms > 0 && ++launches % 199 == 0;
    const double milliseconds = now.slow_host_us * 1e-3 + (hiccups ? now.hiccup_ms : 0);
    if (milliseconds > 0)
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

}  // namespace

int processors() {
    if (const int played = settings().multiprocessors)
        return played;
    // Asking costs microseconds.
    static const int count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    return count;
}

int max_active_blocks(dim3 block, std::size_t shared_bytes) {
    // Each block of a cooperative kernel is an OS thread: a few per core already share it by turns.
    constexpr int blocks_per_processor = 8;
    const int at_once = settings().multiprocessors > 0 ? 1 : blocks_per_processor;
    return count(block) <= max_threads && shared_bytes <= shared_bytes_optin ? at_once : 0;
}

cudaError_t allow_shared_bytes(const void* kernel, int bytes) {
    if (bytes < 0 || static_cast<std::size_t>(bytes) > shared_bytes_optin)
        return call_failed(cudaErrorInvalidValue,
                           "cudaFuncSetAttribute: " + std::to_string(bytes) +
                               " bytes of dynamic shared memory; a block may have 0 to " +
                               std::to_string(shared_bytes_optin));
    std::lock_guard lock(larger_shared().mutex);
    larger_shared().bytes[kernel] = static_cast<std::size_t>(bytes);
    return cudaSuccess;
}

cudaError_t enqueue_kernel(cudaStream_t handle, PreparedKernel& kernel, std::size_t bytes,
                           PreparedKernel* (*move_to)(void* address, PreparedKernel& kernel),
                           const void* const* pointers, int pointer_count) {
    if (const cudaError_t status = enter_call("a kernel launch"))
        return status;
    const LaunchShape& shape = kernel.shape;
    const auto launch = [&] { return KernelRun(kernel, settings()).name(); };
    if (const std::string reason = refusal(shape); !reason.empty())
        return call_failed(cudaErrorInvalidConfiguration, launch() + ": " + reason);
    if (shape.shared_bytes > max_shared_bytes &&
        shape.shared_bytes > shared_bytes_of(kernel.function))
        return call_failed(cudaErrorInvalidValue,
                           launch() + ": " + std::to_string(shape.shared_bytes) +
                               " bytes of dynamic shared memory, but this kernel may have " +
                               std::to_string(shared_bytes_of(kernel.function)) + "; up to " +
                               std::to_string(shared_bytes_optin) +
                               " must be asked for by cudaFuncSetAttribute");
    if (shape.cooperative) {
        const auto limit =
            static_cast<std::uint64_t>(max_active_blocks(shape.block, 0) * processors());
        if (count(shape.grid) > limit)
            return call_failed(cudaErrorCooperativeLaunchTooLarge,
                               launch() + ": " + std::to_string(count(shape.grid)) +
                                   " blocks cannot all run at the same time here; " +
                                   std::to_string(limit) + " can");
    }
    for (int i = 0; i < pointer_count; i++)
        if (pointers[i] != nullptr && !find_allocation(pointers[i]))
            return call_failed(cudaErrorIllegalAddress,
                               launch() + ": pointer argument " + std::to_string(i + 1) +
                                   " is not device memory: " + describe_address(pointers[i]));
    if (const cudaError_t status = check_loaded(kernel))
        return status;
    const std::shared_ptr<Stream> stream = find_stream(handle, "a kernel launch");
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (const cudaError_t status = check_peers(kernel, bytes, stream->device))
        return status;
    const bool is_first = stream->last_ticket() == 0;
    if (const cudaError_t status =
            begin_work(*stream, is_first ? launch().c_str() : "a kernel launch"))
        return status;
    delay_host();
    queue_kernel(*stream, kernel, bytes, move_to);
    return cudaSuccess;
}

// ---- Launches by a kernel's address, which says nothing of its parameters

namespace {

// Returns the types of a function's parameters, of its name: {"int", "float*"} of "f(int, float*)".
std::vector<std::string> parameter_types(const std::string& name) {
    std::vector<std::string> types;
    int depth = 0;
    // From the closing parenthesis back to the opening one; each type lies before `end`.
    for (std::size_t end = name.size() - 1, i = end; depth >= 0 && i-- > 0;) {
        depth += std::string_view(")>]").find(name[i]) != std::string_view::npos;
        depth -= std::string_view("(<[").find(name[i]) != std::string_view::npos;
        if (depth < 0 || (depth == 0 && name[i] == ',')) {
            const std::size_t begin = name.find_first_not_of(' ', i + 1);
            if (begin < end)
                types.insert(types.begin(), name.substr(begin, end - begin));
            end = i;
        }
    }
    return types;
}

// Returns those of the kernel at the address; nullptr if there is none. Looks it up once.
const std::vector<std::string>* parameter_types(const void* address) {
    static auto* known = new std::map<const void*, std::vector<std::string>>;
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    const auto found = known->find(address);
    if (found != known->end())
        return &found->second;
    const std::string name = kernel_name(address);
    return name.empty() ? nullptr : &known->emplace(address, parameter_types(name)).first->second;
}

// Returns how many bytes an argument of the type has; 0 if it is no number or pointer.
std::size_t bytes_of(const std::string& type) {
    static const std::map<std::string, std::size_t> numbers = {
        {"bool", 1},          {"int", 4},   {"unsigned int", 4},       {"long", 8},
        {"unsigned long", 8}, {"float", 4}, {"unsigned long long", 8}, {"long long", 8},
        {"double", 8}};
    const auto found = numbers.find(type);
    return found != numbers.end() ? found->second : type.ends_with("*") ? sizeof(void*) : 0;
}

// A call puts the first whole numbers and pointers into some registers, the first floats into
// others, and the rest on the stack, in order: which ones does not depend on what else there is.
#if defined(__x86_64__)
using Words = std::make_index_sequence<6>;
#else  // AArch64
using Words = std::make_index_sequence<8>;
#endif
using Floats = std::make_index_sequence<8>;
using OnStack = std::make_index_sequence<16>;
template <std::size_t>
using Word = std::uint64_t;
template <std::size_t>
using Float = double;

struct KernelOfAddress final : PreparedKernel {
    // Returns false if there is no room for it.
    bool add(const void* argument, const std::string& type) {
        const bool is_float = type == "float" || type == "double";
        void* place = is_float && floats_used < floats.size()  ? &floats[floats_used++]
                      : !is_float && words_used < words.size() ? &words[words_used++]
                      : stack_used < stack.size()              ? &stack[stack_used++]
                                                               : static_cast<void*>(nullptr);
        if (place != nullptr)
            std::memcpy(place, argument, bytes_of(type));
        return place != nullptr;
    }
    void call() const override { call(Words(), Floats(), OnStack()); }
    template <std::size_t... W, std::size_t... F, std::size_t... S>
    void call(std::index_sequence<W...>, std::index_sequence<F...>,
              std::index_sequence<S...>) const {
        using Function = void (*)(Word<W>..., Float<F>..., Word<S>...);
        reinterpret_cast<Function>(const_cast<void*>(function))(words[W]..., floats[F]...,
                                                                stack[S]...);
    }
    std::array<std::uint64_t, Words::size()> words{};
    std::array<double, Floats::size()> floats{};
    std::array<std::uint64_t, OnStack::size()> stack{};
    std::size_t words_used = 0, floats_used = 0, stack_used = 0;
};

}  // namespace

cudaError_t launch(cudaStream_t stream, LaunchShape shape, const void* address, void** arguments,
                   Where where) {
    KernelOfAddress kernel;
    kernel.function = address;
    kernel.shape = shape;
    kernel.where = where;
    const std::vector<std::string>* types = parameter_types(address);
    if (types == nullptr)
        return call_failed(cudaErrorInvalidValue, "a launch at " + to_string(where) +
                                                      " was given an address that is none of a "
                                                      "kernel of this program");
    std::vector<const void*> pointers;
    for (const std::string& type : *types) {
        if (bytes_of(type) == 0 || !kernel.add(*arguments, type))
            return call_failed(cudaErrorInvalidValue,
                               KernelRun(kernel, settings()).name() + ": its parameter of type " +
                                   type + " cannot be passed to a kernel's address; launch the " +
                                   "kernel itself, without a cast");
        if (type.ends_with("*"))
            pointers.push_back(*static_cast<void* const*>(*arguments));
        arguments++;
    }
    return enqueue_kernel(
        stream, kernel, sizeof kernel,
        [](void* place, PreparedKernel& from) -> PreparedKernel* {
            return new (place) KernelOfAddress(static_cast<KernelOfAddress&>(from));
        },
        pointers.data(), static_cast<int>(pointers.size()));
}

}  // namespace cuda_on_cpu
