#pragma once
// A fiber: a stack of its own, switched to in a few nanoseconds by Boost.Context. The sanitizers
// are told of every switch. A fiber never leaves the OS thread that made it, or compilers' cached
// addresses of thread-local variables (shared memory!) would go wrong.
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#define CUDA_ON_CPU_TSAN 1
#else
#define CUDA_ON_CPU_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CUDA_ON_CPU_ASAN 1
#else
#define CUDA_ON_CPU_ASAN 0
#endif

namespace cuda_on_cpu {

class Fiber {
  public:
    using Entry = void (*)(Fiber& self);  // never returns

    // The OS thread's own stack, as one that can be switched back to.
    Fiber();
    // A new stack (with a closed page below it) that begins at `entry` when it is first switched
    // to.
    Fiber(Entry entry, void* owner);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Leaves `from` (the running fiber) and goes on in `to`; returns when somebody switches back.
    static void switch_between(Fiber& from, Fiber& to);
    // Forgets where the fiber stood: the next switch begins at its entry again.
    void restart();
    // Its frames will never return (AddressSanitizer marks them, and would report whoever comes
    // next).
    void forget_frames();
    // True for an address in the closed pages below the stack.
    bool is_overflow(const void* address) const;
    std::size_t stack_bytes() const { return stack_bytes_; }

    void* owner = nullptr;
    int thread = -1;        // the CUDA thread that it carries
    void* fault_exit[5]{};  // for __builtin_longjmp: where a failed kernel leaves to

  private:
    static void begin(boost::context::detail::transfer_t from);
    void arrive(boost::context::detail::transfer_t from);

    boost::context::detail::fcontext_t context_ = nullptr;
    Entry entry_ = nullptr;              // nullptr for the OS thread's own
    std::byte* stack_bottom_ = nullptr;  // lowest byte
    std::size_t stack_bytes_ = 0;
    void* thread_sanitizer_fiber_ = nullptr;
    void* fake_stack_ = nullptr;  // AddressSanitizer's
};

// ThreadSanitizer's view of order between CUDA threads: what `release` did at `place` comes before
// what follows `acquire` there. Nothing without ThreadSanitizer.
#if CUDA_ON_CPU_TSAN
void order_release(void* place);
void order_acquire(void* place);
#else
inline void order_release(void*) {}
inline void order_acquire(void*) {}
#endif

}  // namespace cuda_on_cpu
