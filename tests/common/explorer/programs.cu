#include "tests/common/explorer/programs.hpp"

#include <cuda/atomic>

namespace ddp::test {
namespace {

using Word = cuda::atomic_ref<unsigned int, cuda::thread_scope_system>;

__device__ unsigned int wait_for_any(SmallMemory* memory, const Instruction& now) {
    for (;;) {
        for (unsigned int turn = 0; turn < max_places; turn++) {
            Word place(memory->places[(now.place + turn) % max_places][0]);
            if (place.load(now.order) >= now.value)
                return 1 + turn;
        }
        for (unsigned int i = 0; i <= now.value % 2; i++)
            __nanosleep(20);
    }
}

__device__ void run_as(SmallMemory* memory, int number, const SmallProgram& program) {
    for (int i = 0; i < program.size; i++) {
        const Instruction& now = program.code[static_cast<std::size_t>(i)];
        Word place(memory->places[now.place][0]);
        switch (now.kind) {
            case Instruction::read:
                memory->seen[number][i] = memory->data[now.place];
                break;
            case Instruction::write:
                memory->data[now.place] = now.value;
                break;
            case Instruction::load:
                memory->seen[number][i] = place.load(now.order);
                break;
            case Instruction::store:
                place.store(now.value, now.order);
                break;
            case Instruction::add:
                memory->seen[number][i] = place.fetch_add(now.value, now.order);
                break;
            case Instruction::fence:
                cuda::atomic_thread_fence(now.order);
                break;
            case Instruction::wait:
                while (place.load(now.order) < now.value)
                    __nanosleep(20);
                break;
            case Instruction::wait_exactly:
                while (place.load(now.order) != now.value)
                    __nanosleep(20);
                break;
            case Instruction::wait_any:
                memory->seen[number][i] = wait_for_any(memory, now);
                break;
        }
    }
}

__global__ void run_program(SmallMemory* memory, int number, SmallProgram program) {
    run_as(memory, number, program);
}

__global__ void run_blocks(SmallMemory* memory, SmallPrograms programs) {
    run_as(memory, static_cast<int>(blockIdx.x), programs[blockIdx.x]);
}

}  // namespace

void launch_program(Stream& stream, SmallMemory* memory, int number, const SmallProgram& program) {
    launch(stream, {1, 1}, run_program, memory, number, program);
}

void launch_blocks(Stream& stream, SmallMemory* memory, int blocks, const SmallPrograms& programs) {
    launch(stream, {static_cast<unsigned int>(blocks), 1}, run_blocks, memory, programs);
}

}  // namespace ddp::test
