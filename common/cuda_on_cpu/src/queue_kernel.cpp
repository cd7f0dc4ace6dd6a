// The end of a launch: the kernel goes into its stream's queue.
//
// Alone in its file: the linker takes it from the library only for a program that has no other
// queue_kernel, as the explorer has.
#include "capture.hpp"

namespace cuda_on_cpu {
namespace {

struct RunKernel final : Command {
    // `stream` is nullptr for a kernel that is captured: its graph says when it is in flight.
    RunKernel(Stream* stream, PreparedKernel* kernel, bool on_heap)
        : stream(stream), kernel(kernel), on_heap(on_heap) {
        if (stream != nullptr && kernel->shape.cooperative)
            stream->cooperative_kernel_begins(*kernel);
    }
    ~RunKernel() override {
        if (stream != nullptr && kernel->shape.cooperative)
            stream->cooperative_kernel_ends();
        kernel->~PreparedKernel();
        if (on_heap)
            ::operator delete (kernel, std::align_val_t{64});
    }
    void run(Stream& runs_it) override { runs_it.run_kernel(*kernel); }
    const PreparedKernel* cooperative_kernel() const override {
        return kernel->shape.cooperative ? kernel : nullptr;
    }
    Stream* stream;
    PreparedKernel* kernel;
    bool on_heap;
};
constexpr std::size_t arguments_offset = 64;
static_assert(sizeof(RunKernel) <= arguments_offset);

}  // namespace

void queue_kernel(Stream& stream, PreparedKernel& kernel, std::size_t bytes,
                  PreparedKernel* (*move_to)(void* address, PreparedKernel& kernel)) {
    const auto construct = [&](Stream* in_flight_on) {
        return [&, in_flight_on](void* memory) {
            const bool on_heap = arguments_offset + bytes > Stream::slot_bytes;
            void* place = on_heap ? ::operator new (bytes, std::align_val_t{64})
                                  : static_cast<std::byte*>(memory) + arguments_offset;
            return new (memory) RunKernel(in_flight_on, move_to(place, kernel), on_heap);
        };
    };
    if (nobody_captures() || !note_command(stream, construct(nullptr)))
        stream.enqueue(construct(&stream));
}

}  // namespace cuda_on_cpu
