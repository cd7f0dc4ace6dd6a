// The end of a launch: the kernel goes into its stream's queue.
//
// Alone in its file: the linker takes it from the library only for a program that has no other
// queue_kernel, as the explorer has.
#include "runtime.hpp"

namespace cuda_on_cpu {
namespace {

struct RunKernel final : Command {
    RunKernel(Stream& stream, PreparedKernel* kernel, bool on_heap)
        : stream(stream), kernel(kernel), on_heap(on_heap) {
        if (kernel->shape.cooperative)
            stream.cooperative_kernel_begins(*kernel);
    }
    ~RunKernel() override {
        if (kernel->shape.cooperative)
            stream.cooperative_kernel_ends();
        kernel->~PreparedKernel();
        if (on_heap)
            ::operator delete (kernel, std::align_val_t{64});
    }
    void run(Stream&) override { stream.run_kernel(*kernel); }
    Stream& stream;
    PreparedKernel* kernel;
    bool on_heap;
};
constexpr std::size_t arguments_offset = 64;
static_assert(sizeof(RunKernel) <= arguments_offset);

}  // namespace

void queue_kernel(Stream& stream, PreparedKernel& kernel, std::size_t bytes,
                  PreparedKernel* (*move_to)(void* address, PreparedKernel& kernel)) {
    stream.enqueue([&](void* memory) {
        const bool on_heap = arguments_offset + bytes > Stream::slot_bytes;
        void* place = on_heap ? ::operator new (bytes, std::align_val_t{64})
                              : static_cast<std::byte*>(memory) + arguments_offset;
        return new (memory) RunKernel(stream, move_to(place, kernel), on_heap);
    });
}

}  // namespace cuda_on_cpu
