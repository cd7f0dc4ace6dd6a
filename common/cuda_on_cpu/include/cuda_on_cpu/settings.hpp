#pragma once
// Settings of how strictly the CPU plays the GPU. Tests and debugging sessions need them, programs
// do not.
#include <cstdint>
#include <string>

namespace cuda_on_cpu {

// In which order the threads of a block (and the blocks of a grid that is not cooperative) take
// their turn between two barriers. A kernel whose result depends on it lacks a barrier. If it is
// random, so is the time of a __nanosleep: up to twice as long as it is told.
enum class Order { forward, reversed, random };

// A number of blocks, and of threads in each.
struct UsualShape {
    unsigned int blocks = 1, threads = 1;
};

inline constexpr int max_depth = 1021;  // of a launch queue: an H100's

struct Settings {
    // At least as hostile as a GPU: shared and fresh device memory hold NaN, every kernel is
    // checked for writes past an allocation, host memory of an asynchronous copy is closed until
    // the host synchronises, allocating beside a cooperative kernel fails, a call that waits for a
    // full queue keeps all others out, and memory that is not pinned is copied as late as CUDA
    // allows. Slower; every test of the book runs so.
    bool strict = false;
    // Two accesses of a launch's threads to one place, of which one writes and nothing puts one
    // before the other, end the kernel with an error. For programs that are linked with the library
    // cuda_on_cpu_races, and kernels that are compiled for it.
    bool races = false;
    Order order = Order::forward;
    std::uint64_t seed = 1;          // of Order::random
    double kernel_timeout_s = 30.0;  // a kernel that runs longer is ended with an error; 0 = never
    // The shape of a launch whose number of threads is left to the device (grid_for, rows_for,
    // shape_of_transfer). One thread is fastest on a CPU. Tests give several blocks of several
    // threads, so that a kernel in which threads meet is not right by chance.
    UsualShape shape = {};
    int devices = 1;        // how many devices cudaGetDeviceCount reports
    double memory_mib = 0;  // of all devices together; 0 = as much as the host has
    // A small GPU runs as many cooperative blocks at the same time, those of all streams together,
    // and not one more. 0 = a CPU, whose threads take turns.
    int multiprocessors = 0;
    // A GPU that drives a display ends a kernel that runs for two seconds, with the device.
    bool display = false;
    // One in eight cooperative kernels ends so much later: what other ranks wait for is written
    // already, and they may do next what this kernel does not allow beside it.
    double late_ms = 0;
    // The queues through which the host's commands come to a GPU: streams beyond their number share
    // them, and may stand behind each other. 0 = one for each stream.
    int queues = 0;
    // The number of kernels that the launch queue of a stream holds; an event for which a host may
    // sleep takes the room of 17. 0 = max_depth commands of any kind.
    int depth = 0;
    // A host that is slower than its device: each launch takes it so long.
    double slow_host_us = 0;
    // One launch in 199 takes so much longer: the system has given its host's core away.
    double hiccup_ms = 0;
    // Blocks that poll memory of the host are counted. If many do, that is said at the end.
    bool polls = false;
    // Calls that may wait for the device do so, and keep all other threads out meanwhile:
    // cudaMalloc, cudaFree, their kin for pinned memory, cuBLAS's handles, new streams.
    bool waits = false;
    // The blocks of an ordinary launch run at the same time, and hold multiprocessors; so does a
    // product of cuBLAS.
    bool crowded = false;
    // Processes that name the same file share one GPU: its memory and its multiprocessors.
    std::string gpu;
};

// The settings in force: at first those of the environment variable CUDA_ON_CPU, a list such as
// "strict,races,order=random:7,shape=3x5,timeout=5,devices=2,memory=64,multiprocessors=20,late=30,display,queues=8,
// depth=200,slow_host=4,hiccup=200,polls,waits,crowded,gpu=/tmp/gpu0".
// A word that is none of these ends the program with a sentence and exit status 2.
const Settings& settings();

// For tests: `changed` is in force for every launch and allocation that follows. `devices` and
// `gpu` are fixed at the first call.
void set_settings(const Settings& changed);

// The text form, parsed. Throws std::invalid_argument with one sentence.
Settings parse_settings(const std::string& text);

}  // namespace cuda_on_cpu
