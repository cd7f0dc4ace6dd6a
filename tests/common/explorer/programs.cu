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

__global__ void write_by_block(SmallMemory* memory) {
    memory->data[blockIdx.x] = 7;
}
__global__ void read_by_block(SmallMemory* memory) {
    memory->seen[0][blockIdx.x] = memory->data[1 - blockIdx.x];
}

__device__ void wait_for(Word flag, unsigned int value, const Message& message) {
    const auto poll = message.polls_relaxed ? cuda::memory_order_relaxed : message.load;
    for (unsigned int now = flag.load(poll); message.awaits_exactly ? now != value : now < value;
         now = flag.load(poll))
        for (int i = 0; i < message.sleeps; i++)
            __nanosleep(20);
    if (message.polls_relaxed)
        flag.load(message.load);
    if (message.has_fences)
        cuda::atomic_thread_fence(cuda::memory_order_acquire);
}

__device__ void raise(Word flag, const Message& message) {
    if (message.has_fences)
        cuda::atomic_thread_fence(cuda::memory_order_release);
    flag.store(1, message.store);
}

__global__ void send_message(SmallMemory* memory, Message message) {
    memory->data[0] = 7;
    raise(Word(memory->places[0][0]), message);
    if (message.is_posted_twice)
        Word(memory->places[0][0]).store(2, message.store);
    if (!message.is_acknowledged)
        return;
    if (message.waits_for_ack)
        wait_for(Word(memory->places[1][0]), 1, message);
    memory->data[0] = 8;
}

__global__ void receive_message(SmallMemory* memory, Message message) {
    wait_for(Word(memory->places[0][0]), message.awaited, message);
    memory->seen[0][0] = memory->data[0];
    if (message.is_acknowledged)
        raise(Word(memory->places[1][0]), message);
}

}  // namespace

void launch_program(Stream& stream, SmallMemory* memory, int number, const SmallProgram& program) {
    launch(stream, {1, 1}, run_program, memory, number, program);
}

void launch_blocks(Stream& stream, SmallMemory* memory, int blocks, const SmallPrograms& programs) {
    launch(stream, {static_cast<unsigned int>(blocks), 1}, run_blocks, memory, programs);
}

void launch_writing_blocks(Stream& stream, SmallMemory* memory) {
    launch(stream, {2, 1}, write_by_block, memory);
}
void launch_reading_blocks(Stream& stream, SmallMemory* memory) {
    launch(stream, {2, 1}, read_by_block, memory);
}

void launch_sender(Stream& stream, SmallMemory* memory, const Message& message) {
    launch(stream, {1, 1}, send_message, memory, message);
}

void launch_receiver(Stream& stream, SmallMemory* memory, const Message& message) {
    launch(stream, {1, 1}, receive_message, memory, message);
}

}  // namespace ddp::test
