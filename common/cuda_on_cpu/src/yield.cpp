// Alone in its file: the linker takes it from the library only for a program that has no other
// yield, as the explorer has.
#include "block.hpp"

namespace cuda_on_cpu {

void yield(unsigned int nanoseconds, Where) {
    kernel_thread.executor->yield(nanoseconds);
}

}  // namespace cuda_on_cpu
