#pragma once
#include <signal.h>

namespace cuda_on_cpu {

// Installs the handlers that turn a wrong touch of memory into a sentence: inside a kernel it
// becomes the device's failure, in host code the program ends as it would have, after the sentence.
// May be called again: whoever installed other handlers in between (a test framework, for each
// test) then comes second.
void install_fault_handlers();

// The signal that interrupts a kernel which neither waits nor returns.
int interrupt_signal();

// A thread that runs kernels needs a stack for its signal handlers: a kernel may overflow its own.
class SignalStack {
  public:
    SignalStack();
    ~SignalStack();
    SignalStack(const SignalStack&) = delete;
    SignalStack& operator=(const SignalStack&) = delete;

  private:
    void* memory_ = nullptr;
    stack_t previous_{};  // a sanitizer's
};

}  // namespace cuda_on_cpu
