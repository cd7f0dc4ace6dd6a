#include "faults.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <string>

#include "block.hpp"
#include "memory.hpp"
#include "protection.hpp"

#if CUDA_ON_CPU_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace cuda_on_cpu {
namespace {

constexpr std::size_t signal_stack_bytes = 256 << 10;
struct sigaction previous_handlers[2];  // of SIGSEGV and SIGBUS

bool was_write(const void* context) {
#if defined(__x86_64__)
    return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
    return false;  // a reader of the message is told "read"
#endif
}

// The handler that was there before (a sanitizer's, say), or the system's own way to end the
// program.
void pass_on(int signal) {
    sigaction(signal, &previous_handlers[signal == SIGBUS], nullptr);
    // The faulting instruction runs again, and meets that handler.
}

void on_bad_touch(int signal, siginfo_t* info, void* context) {
    if (info->si_code <= 0) {  // sent by a process: no instruction has failed, so none runs again
        pass_on(signal);
        ::raise(signal);
        return;
    }
    const bool is_write = was_write(context);
    void* address = info->si_addr;
    if (signal == SIGSEGV && host_guard() == HostGuard::page_protection && device_code_runs() &&
        open_device_pages(address))
        return;
    const auto reopens = [&] { return signal == SIGSEGV && reopen_page(address); };
    if (kernel_thread.in_kernel) {
        if (reopens())
            return;  // a kernel may use pinned memory whenever its stream's order allows it
        kernel_thread.executor->leave_kernel({address, is_write});
    }
    std::string text = describe_pending_copy(address, is_write);
    if (text.empty()) {
        if (reopens())
            return;  // only a neighbour on the same page
        if (!is_near_allocation(address))
            return pass_on(signal);
        text = std::string("host code ") + (is_write ? "wrote " : "read ") +
               describe_address(address) + ": only kernels and cudaMemcpy may touch device memory";
    }
    std::fprintf(stderr, "cuda_on_cpu: %s\n", text.c_str());
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    sigaction(signal, &usual, nullptr);
}

void on_interrupt(int, siginfo_t*, void*) {
    if (kernel_thread.in_kernel && kernel_thread.executor->run().is_cancelled())
        kernel_thread.executor->leave_kernel();
}

void install(int signal, void (*handler)(int, siginfo_t*, void*), struct sigaction* previous) {
    const auto is_installed = [&](struct sigaction& action) {
        sigaction(signal, nullptr, &action);
        return action.sa_sigaction == handler;
    };
    struct sigaction action {};
    if (is_installed(action))
        return;
    static std::mutex one_at_a_time;  // host threads may come here together
    std::lock_guard lock(one_at_a_time);
    if (is_installed(action))
        return;
    if (previous != nullptr)
        *previous = action;
    action = {};
    action.sa_sigaction = handler;
    // SA_NODEFER: leaving the handler by a jump must not leave the signal blocked.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(signal, &action, nullptr);
}

}  // namespace

int interrupt_signal() {
    return SIGRTMIN + 6;
}

void install_fault_handlers() {
    install(SIGSEGV, on_bad_touch, &previous_handlers[0]);
    install(SIGBUS, on_bad_touch, &previous_handlers[1]);
    install(interrupt_signal(), on_interrupt, nullptr);
}

SignalStack::SignalStack() {
    memory_ = mmap(nullptr, signal_stack_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    stack_t stack{};
    stack.ss_sp = memory_;
    stack.ss_size = signal_stack_bytes;
    sigaltstack(&stack, &previous_);
}

SignalStack::~SignalStack() {
    sigaltstack(&previous_, nullptr);
#if CUDA_ON_CPU_ASAN
    __asan_unpoison_memory_region(memory_, signal_stack_bytes);  // handlers left it by jumps
#endif
    munmap(memory_, signal_stack_bytes);
}

}  // namespace cuda_on_cpu
