// `sum += mine` is two accesses to memory: a read and a write. Between them the sum may change.
//
//     thread 0 adds 1      thread 1 adds 2      sum
//     reads 0                                    0
//                          reads 0               0
//     writes 0 + 1                               1
//                          writes 0 + 2          2     thread 0's addition is lost
#include "02_kernels/race.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// The accesses that the kernels below note down: `*count` of them so far.
struct AccessLog {
    int* count;
    SumAccess* accesses;
};

// Appends an access to the log. atomicAdd returns the value before the addition, so every thread
// gets a place of its own.
__device__ void note(AccessLog log, bool is_write, int value) {
    log.accesses[atomicAdd(log.count, 1)] = {static_cast<int>(threadIdx.x), is_write, value};
}

// Adds 1 for thread 0 and 2 for thread 1. `volatile`: every access really goes to memory.
__global__ void add_in_two_accesses(volatile int* sum, AccessLog log) {
    const int mine = static_cast<int>(threadIdx.x) + 1;
    const int old = *sum;
    note(log, false, old);
    __nanosleep(1000);  // here the thread loses its turn
    *sum = old + mine;
    note(log, true, old + mine);
}

// Adds in one access, which nothing can come between.
__global__ void add_in_one_access(int* sum, AccessLog log) {
    const int mine = static_cast<int>(threadIdx.x) + 1;
    const int old = atomicAdd(sum, mine);
    note(log, true, old + mine);
}

// Add 1 to the sum, many times. No thread gives up its turn here: other threads just run, too.
__global__ void add_ones(int additions, volatile int* sum) {
    for (int i = 0; i < additions; i++)
        *sum = *sum + 1;
}
__global__ void add_ones_atomically(int additions, int* sum) {
    for (int i = 0; i < additions; i++)
        atomicAdd(sum, 1);
}

}  // namespace

Race race_of_two(bool with_atomic) {
    Stream stream;
    Buffer<int> sum(std::vector<int>{0}), count(std::vector<int>{0});
    Buffer<SumAccess> accesses(std::vector<SumAccess>(4));
    const AccessLog log{count.data(), accesses.data()};
    // One block of two threads.
    if (with_atomic)
        launch(stream, {1, 2}, add_in_one_access, sum.data(), log);
    else
        launch(stream, {1, 2}, add_in_two_accesses, sum.data(), log);
    stream.synchronize();
    Race race{accesses.to_host_now(), sum.to_host_now()[0]};
    race.accesses.resize(static_cast<std::size_t>(count.to_host_now()[0]));
    return race;
}

int sum_of_ones(int additions, bool with_atomic) {
    Stream stream;
    Buffer<int> sum(std::vector<int>{0});
    // Two blocks of one thread. The blocks of a cooperative launch run at the same time.
    if (with_atomic)
        launch_cooperative(stream, {2, 1}, add_ones_atomically, additions, sum.data());
    else
        launch_cooperative(stream, {2, 1}, add_ones, additions, sum.data());
    stream.synchronize();
    return sum.to_host_now()[0];
}

}  // namespace ddp
