#include "fiber.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>

#include "cuda_on_cpu/fence.hpp"

#if CUDA_ON_CPU_ASAN
#include <sanitizer/asan_interface.h>
#endif
#if CUDA_ON_CPU_TSAN
extern "C" {  // of ThreadSanitizer, in none of its headers
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}
#endif

namespace cuda_on_cpu {
namespace {

using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

// A kernel keeps little on its stack; sanitizers put red zones around all of it.
constexpr std::size_t fiber_stack_bytes =
    CUDA_ON_CPU_ASAN || CUDA_ON_CPU_TSAN ? 256 << 10 : 64 << 10;
constexpr std::size_t guard_bytes = 64 << 10;  // a multiple of every page size

// Stacks of fibers that have gone, for those that come: each new stream has a thread of its own
// with fibers of its own, and to map a stack and give it back takes longer than a small kernel.
class SpareStacks {
  public:
    std::byte* take() {
        if (most > 0) {
            const std::lock_guard lock(mutex_);
            if (count_ > 0)
                return spare_[--count_];
        }
        return map();
    }
    void give(std::byte* stack) {
        if (most > 0) {
            const std::lock_guard lock(mutex_);
            if (count_ < most) {
                spare_[count_++] = stack;
                return;
            }
        }
        unmap(stack);
    }

  private:
    static std::byte* map() {
        void* memory = mmap(nullptr, guard_bytes + fiber_stack_bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (memory == MAP_FAILED)
            throw std::bad_alloc();
        auto* stack = static_cast<std::byte*>(memory) + guard_bytes;
        mprotect(stack, fiber_stack_bytes, PROT_READ | PROT_WRITE);
        return stack;
    }
    static void unmap(std::byte* stack) {
        munmap(stack - guard_bytes, guard_bytes + fiber_stack_bytes);
    }

    std::mutex mutex_;
    // Keeps as many as a block has threads, and none under ThreadSanitizer: to that, the mutex
    // would put blocks in an order that the kernel has not.
    static constexpr std::size_t most = CUDA_ON_CPU_TSAN ? 0 : 1024;
    std::array<std::byte*, 1024> spare_{};
    std::size_t count_ = 0;
};
// Nothing makes or destroys it when the program runs: threads of streams may end behind all else.
constinit SpareStacks spare_stacks;

}  // namespace

Fiber::Fiber() {
    pthread_attr_t attributes;
    void* bottom = nullptr;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &bottom, &stack_bytes_);
    pthread_attr_getguardsize(&attributes, &guard_bytes_);
    if (guard_bytes_ == 0)  // the main thread's: the system keeps a megabyte below it free
        guard_bytes_ = guard_bytes;
    pthread_attr_destroy(&attributes);
    stack_bottom_ = static_cast<std::byte*>(bottom);
#if CUDA_ON_CPU_TSAN
    thread_sanitizer_fiber_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(Entry entry, void* owner_)
    : owner(owner_),
      entry_(entry),
      stack_bottom_(spare_stacks.take()),
      stack_bytes_(fiber_stack_bytes),
      guard_bytes_(guard_bytes) {
    restart();
}

Fiber::~Fiber() {
    if (entry_ == nullptr)
        return;
#if CUDA_ON_CPU_TSAN
    __tsan_destroy_fiber(thread_sanitizer_fiber_);
#endif
    forget_frames();
    spare_stacks.give(stack_bottom_);
}

void Fiber::restart() {
    forget_frames();
    fake_stack_ = nullptr;
#if CUDA_ON_CPU_TSAN
    if (thread_sanitizer_fiber_ != nullptr)
        __tsan_destroy_fiber(thread_sanitizer_fiber_);
    thread_sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
    context_ = make_fcontext(stack_bottom_ + fiber_stack_bytes, fiber_stack_bytes, &Fiber::begin);
}

// A context is the address of the last that was pushed.
Fiber::Moment Fiber::moment() const {
    return {context_, {static_cast<const std::byte*>(context_), bytes().data() + bytes().size()}};
}

void Fiber::set_back(const Moment& to) {
    context_ = to.context;
    std::copy(to.stack.begin(), to.stack.end(), static_cast<std::byte*>(context_));
}

void Fiber::forget_frames() {
#if CUDA_ON_CPU_ASAN
    __asan_unpoison_memory_region(stack_bottom_, stack_bytes_);
#endif
}

bool Fiber::is_overflow(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    return byte >= stack_bottom_ - guard_bytes_ && byte < stack_bottom_;
}

void Fiber::begin(transfer_t transfer) {
    Fiber* self = static_cast<Fiber**>(transfer.data)[1];
    self->arrive(transfer);
    self->entry_(*self);
    __builtin_unreachable();
}

#if CUDA_ON_CPU_TSAN
void order_release(void* place) {
    __tsan_release(place);
}
void order_acquire(void* place) {
    __tsan_acquire(place);
}
Unseen::Unseen() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}
Unseen::~Unseen() {
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
// The last owner of an event's record frees it, behind the decrement by which the one before has
// let go. Both are libstdc++'s, with release and acquire at one count, and g++ 12's ThreadSanitizer
// has been seen to report them all the same, once in ten runs in which eight threads record events.
extern "C" const char* __tsan_default_suppressions() {
    return "race:std::_Sp_counted_ptr_inplace<cuda_on_cpu::Recording,\n";
}
void seen_fence(std::memory_order order) {
    static char all_fences;
    std::atomic_thread_fence(order);
    order_acquire(&all_fences);
    order_release(&all_fences);
}
#endif

}  // namespace cuda_on_cpu
