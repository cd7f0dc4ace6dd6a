// The exercise first_kernel: who computed each element, how often, and with which launch.
#include <cmath>

#include "exercises/02_kernels/first_kernel.hpp"
#include "exercises/support/gate.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr unsigned int nowhere = ~0u;

struct Case {
    unsigned int n, blocks, threads;
};
// A task: its function, and what usual mistakes are told.
struct Function {
    void (*call)(const Case&, const float* x, float* values, Place*, RememberingStream&);
    float (*value)(unsigned int i, int times);  // if it is computed so many times
    std::string rule, past_end;
    unsigned int fewer = 0;  // elements than n
};

float number(unsigned int i) {
    return static_cast<float>(i * i % 1009 + i + 1);
}

// A grid, or a place, as the student writes it: {3, 4}
std::string text(unsigned int first, unsigned int second) {
    return "{" + std::to_string(first) + ", " + std::to_string(second) + "}";
}

std::string wrong_launch(const Case& asked, const std::vector<LaunchShape>& launches) {
    if (launches.size() != 1)
        return "you make " + std::to_string(launches.size()) +
               " launches on the stream. One launch(stream, {blocks, threads}, kernel, "
               "arguments...) starts all threads.";
    const unsigned int blocks = launches[0].grid.x, threads = launches[0].block.x;
    const std::string yours = "you launch {blocks, threads} = " + text(blocks, threads) + ".\n";
    if (threads != asked.threads)
        return yours + "In {blocks, threads} the number of blocks comes first.";
    if (blocks < asked.blocks)
        return yours + "Dividing whole numbers rounds down: here it must round up.";
    return blocks == asked.blocks ? "" : yours + "Fewer blocks are enough.";
}

std::string wrong_element(const Function& function, const Case& asked, unsigned int i, float value,
                          Place place) {
    int times = 0;
    while (value != function.value(i, times) && times < 30)
        times++;
    if (times == 30)
        return " is " + std::to_string(value) + ", not " + std::to_string(function.value(i, 1));
    if (times > 1)
        return " was computed " + std::to_string(times) +
               " times: the ranges of your threads overlap.";
    const unsigned int grid = asked.blocks * asked.threads, thread = i % grid;
    if (times == 0 && i > 0 && i + 1 + function.fewer == asked.n)
        return ", the last one, was not computed: does your bound leave it out?";
    if (times == 0)
        return " was not computed. " + function.rule +
               (i < grid ? "" : " There are more elements than threads: a thread takes several.");
    if (place.block == nowhere)
        return " is right, but places[i] = {blockIdx.x, threadIdx.x} was not written.";
    if (place.block == thread / asked.threads && place.thread == thread % asked.threads)
        return "";
    return " was computed by thread " + text(place.block, place.thread) + ", it belongs to " +
           text(thread / asked.threads, thread % asked.threads) + ". " + function.rule;
}

void check(const Function& function, const Case& asked) {
    const unsigned int n = asked.n - function.fewer, all = n + asked.blocks * asked.threads + 2;
    const std::string what = "n = " + std::to_string(asked.n) +
                             ", {blocks, threads} = " + text(asked.blocks, asked.threads) + ": ";
    std::vector<float> x, before(all, -1);  // with room past the end, to see who writes there
    for (unsigned int i = 0; i < n; i++)
        before[i] = function.value(i, 0);
    for (unsigned int i = 0; i < asked.n; i++)
        x.push_back(number(i));
    const Buffer<float> input(x);  // reading past its end is an error as well
    Buffer<float> values(before);
    Buffer<Place> places(std::vector<Place>(all, {nowhere, nowhere}));
    RememberingStream stream;
    trying(what + function.past_end);
    std::string wrong = wrong_if_host_waits(
        stream, [&] { function.call(asked, input.data(), values.data(), places.data(), stream); });
    stream.synchronize();
    if (wrong.empty())
        wrong = wrong_launch(asked, stream.launches);
    const std::vector<float> after = values.to_host_now();
    const std::vector<Place> by = places.to_host_now();
    for (unsigned int i = n; i < all && wrong.empty(); i++)
        if (after[i] != -1 || by[i].block != nowhere)
            wrong = "index " + std::to_string(i) + " was written, past the end of the array. " +
                    (n > 0 && by[0].block == nowhere
                         ? "Element 0 was not computed: does your index begin with 1?"
                         : function.past_end);
    for (unsigned int i = 0; i < n && wrong.empty(); i++)
        if (wrong = wrong_element(function, asked, i, after[i], by[i]); !wrong.empty())
            wrong = "element " + std::to_string(i) + wrong;
    if (!wrong.empty())
        throw Wrong(what + wrong);
}

// ---- The tasks

const std::string index_rule =
    "Element i belongs to the thread whose blockIdx.x * blockDim.x + threadIdx.x is i.";

const Function scales = {
    [](const Case& asked, const float*, float* values, Place* places, RememberingStream& stream) {
        scale(asked.n, asked.threads, 4, values, places, stream);
    },
    [](unsigned int i, int times) { return std::ldexp(number(i), 2 * times); }, index_rule,
    index_rule};
const Function adds = {
    [](const Case& asked, const float* x, float* y, Place* places, RememberingStream& stream) {
        saxpy(asked.n, asked.threads, -1.5F, x, y, places, stream);
    },
    [](unsigned int i, int times) { return 7 - 1.5F * static_cast<float>(times) * number(i); },
    index_rule,
    "The last block has more threads than there are elements left: a thread must check that its i "
    "is smaller than n before it touches memory, even if only to read."};
const Function differences = {
    [](const Case& asked, const float* values, float* result, Place* places,
       RememberingStream& stream) {
        add_differences(asked.n, asked.blocks, asked.threads, values, result, places, stream);
    },
    [](unsigned int i, int times) {
        return 5 + static_cast<float>(times) * (number(i + 1) - number(i));
    },
    "With G threads in the grid, thread g takes the elements g, g + G, g + 2 G ...",
    "n values have n - 1 differences: the last value has no next one.", 1};

Task task(const std::string& name, const Function& function, const std::vector<Case>& cases) {
    return {name, [=] {
                for (const Case& asked : cases)
                    check(function, asked);
            }};
}

}  // namespace

std::vector<Task> tasks() {
    return {task("whole_blocks", scales, {{12, 3, 4}, {672, 7, 96}}),
            task("last_block", adds, {{10, 3, 4}, {4, 1, 4}, {1, 1, 4}, {1300, 6, 256}}),
            task("few_threads", differences, {{10, 1, 4}, {100, 3, 8}, {20, 4, 16}, {1, 2, 4}})};
}

}  // namespace ddp::test
