#pragma once
// A fiber: a stack of its own, switched to in a few nanoseconds by Boost.Context. The sanitizers
// are told of every switch. A fiber never leaves the OS thread that made it, or compilers' cached
// addresses of thread-local variables (shared memory!) would go wrong.
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <span>
#include <vector>

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

#if CUDA_ON_CPU_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#if CUDA_ON_CPU_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace cuda_on_cpu {

class Fiber {
  public:
    using Entry = void (*)(Fiber& self);  // never returns

    // The OS thread's own stack, as one that can be switched back to.
    Fiber();
    // A new stack (with closed pages below it) that begins at `entry` when it is first switched to.
    Fiber(Entry entry, void* owner);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Leaves `from` (the running fiber) and goes on in `to`; returns when somebody switches back.
    // Every function that returns behind a switch returns where the processor did not expect it,
    // and that costs more than the switch: hence inline.
    [[gnu::always_inline]] static void switch_between(Fiber& from, Fiber& to);
    // Forgets where the fiber stood: the next switch begins at its entry again.
    void restart();
    // Where it stands while it does not run: the used part of its stack. It can be set back there
    // as often as one likes, without sanitizers.
    struct Moment {
        boost::context::detail::fcontext_t context = nullptr;
        std::vector<std::byte> stack;
    };
    Moment moment() const;
    void set_back(const Moment& to);
    // Its frames will never return (AddressSanitizer marks them, and would report whoever comes
    // next).
    void forget_frames();
    // True for an address in the closed pages below the stack.
    bool is_overflow(const void* address) const;
    std::size_t stack_bytes() const { return stack_bytes_; }
    std::span<const std::byte> bytes() const { return {stack_bottom_, stack_bytes_}; }

    void* owner = nullptr;
    int thread = -1;        // the CUDA thread that it carries
    void* fault_exit[5]{};  // for __builtin_longjmp: where a failed kernel leaves to

  private:
    static void begin(boost::context::detail::transfer_t from);
    [[gnu::always_inline]] void arrive(boost::context::detail::transfer_t from);

    boost::context::detail::fcontext_t context_ = nullptr;
    Entry entry_ = nullptr;              // nullptr for the OS thread's own
    std::byte* stack_bottom_ = nullptr;  // lowest byte
    std::size_t stack_bytes_ = 0;
    std::size_t guard_bytes_ =
        0;  // of the closed pages below it: what lies further down is not its
    void* thread_sanitizer_fiber_ = nullptr;
    void* fake_stack_ = nullptr;  // AddressSanitizer's
};

inline void Fiber::switch_between(Fiber& from, Fiber& to) {
#if CUDA_ON_CPU_ASAN
    __sanitizer_start_switch_fiber(&from.fake_stack_, to.stack_bottom_, to.stack_bytes_);
#endif
#if CUDA_ON_CPU_TSAN
    // Switching is no synchronisation: two CUDA threads are unordered until a barrier orders them.
    __tsan_switch_to_fiber(to.thread_sanitizer_fiber_, __tsan_switch_to_fiber_no_sync);
#endif
    Fiber* pair[2] = {&from, &to};
    from.arrive(boost::context::detail::jump_fcontext(to.context_, pair));
}

// Runs in the fiber that was switched to: notes where the one that switched stands.
inline void Fiber::arrive(boost::context::detail::transfer_t transfer) {
    Fiber* previous = static_cast<Fiber**>(transfer.data)[0];
    previous->context_ = transfer.fctx;
#if CUDA_ON_CPU_ASAN
    __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
}

// ThreadSanitizer's view of order between CUDA threads: what came before `release` at a place comes
// before what follows `acquire` there. Nothing without ThreadSanitizer.
//
// Threads that meet need two places. Each releases at the first when it comes. The last one
// acquires there and releases at the second, where each acquires when it leaves. With one place for
// both, whoever leaves late would count as ordered behind those who have come to the next meeting
// already, and no race between the two meetings would show.
//
// While an Unseen lives, ThreadSanitizer takes no notice of this thread: the locks with which the
// runtime keeps its books put no kernel before another one.
#if CUDA_ON_CPU_TSAN
void order_release(void* place);
void order_acquire(void* place);
struct Unseen {
    Unseen();
    ~Unseen();
};
#else
inline void order_release(void*) {}
inline void order_acquire(void*) {}
struct Unseen {
    Unseen() {}
};
#endif

}  // namespace cuda_on_cpu
