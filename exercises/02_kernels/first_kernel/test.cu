// The exercise first_kernel: who computed each element, how often, and with which launch.
#include <functional>

#include "exercises/02_kernels/first_kernel.hpp"
#include "exercises/support/gate.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr unsigned int nowhere = ~0u;

// An array and a grid, in words: "10 elements, 3 blocks of 4 threads".
struct Case {
    unsigned int n, blocks, threads;

    std::string text() const {
        return std::to_string(n) + (n == 1 ? " element, " : " elements, ") +
               std::to_string(blocks) + (blocks == 1 ? " block of " : " blocks of ") +
               std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    }
};

std::string to_string(Place place) {
    return "thread " + std::to_string(place.thread) + " of block " + std::to_string(place.block);
}

// Throws Wrong unless there was one launch of the shape that the case asks for.
void check_launch(const Case& asked, const std::vector<LaunchShape>& launches) {
    const std::string what = asked.text() + ": ";
    if (launches.empty())
        throw Wrong(what +
                    "nothing was launched on the stream. The work is done by a kernel: "
                    "launch(stream, {blocks, threads}, kernel, arguments...).");
    if (launches.size() > 1)
        throw Wrong(what + "you made " + std::to_string(launches.size()) +
                    " launches. One launch starts all threads: no loop on the host is needed.");
    const unsigned int blocks = launches[0].grid.x, threads = launches[0].block.x;
    const std::string yours =
        Case{asked.n, blocks, threads}.text().substr(what.find(", ") + 2) + ".\n";
    if (blocks == 1 && threads == 1 && asked.blocks * asked.threads > 1)
        throw Wrong(what + "you launch one thread only. Each element gets a thread of its own.");
    if (threads != asked.threads)
        throw Wrong(what + "your blocks have " + std::to_string(threads) +
                    " threads. In {blocks, threads} the number of blocks comes first.");
    if (blocks < asked.blocks)
        throw Wrong(what + "you launch only " + yours +
                    "Dividing whole numbers rounds down: here it must round up.");
    if (blocks > asked.blocks)
        throw Wrong(what + "you launch " + yours + "One block fewer is enough.");
}

// Throws Wrong unless places[i] is `right` for element i, with words for the usual mistakes.
void check_place(const Case& asked, unsigned int i, const std::vector<Place>& places,
                 const Place& right, const std::string& rule) {
    const Place& yours = places[i];
    if (yours.block == right.block && yours.thread == right.thread)
        return;
    const std::string what = asked.text() + ": element " + std::to_string(i) + " ";
    if (yours.block == nowhere)
        throw Wrong(what + "is right, but places[" + std::to_string(i) +
                    "] was not written. The thread that computes an element also writes "
                    "{blockIdx.x, threadIdx.x} there.");
    throw Wrong(what + "was computed by " + to_string(yours) + "; it belongs to " +
                to_string(right) + ".\n" + rule);
}

// Throws Wrong if element i was computed never, or more than once. `after` says which value it has
// if it was computed so many times.
void check_times(const Case& asked, unsigned int i, float value,
                 const std::function<float(unsigned int i, int times)>& after,
                 const std::string& formula, const std::string& if_never) {
    if (value == after(i, 1))
        return;
    const std::string what = asked.text() + ": element " + std::to_string(i) + " ";
    if (value == after(i, 0))
        throw Wrong(what + "was not computed.\n" + if_never);
    for (int times = 2; times <= 64; times++)
        if (value == after(i, times))
            throw Wrong(what + "was computed " + std::to_string(times) +
                        " times: the ranges of your threads overlap.\nTwo threads must not compute "
                        "the same element.");
    throw Wrong(what + "is " + std::to_string(value) + ", right is " + std::to_string(after(i, 1)) +
                ".\nThe formula is " + formula + ".");
}

// The array that a kernel changes, with room past its end, to see who writes there.
struct Guarded {
    unsigned int n, all;
    Buffer<float> values;
    Buffer<Place> places;

    Guarded(unsigned int n, unsigned int room, const std::function<float(unsigned int)>& value)
        : n(n), all(n + room) {
        std::vector<float> on_host(all, -1);
        for (unsigned int i = 0; i < n; i++)
            on_host[i] = value(i);
        values = Buffer<float>(on_host);
        places = Buffer<Place>(std::vector<Place>(all, {nowhere, nowhere}));
    }
    // Throws Wrong if something was written past the end.
    void check_end(const Case& asked, const std::string& why) const {
        const std::vector<float> after = values.to_host_now();
        const std::vector<Place> by = places.to_host_now();
        for (unsigned int i = n; i < all; i++)
            if (after[i] != -1 || by[i].block != nowhere)
                throw Wrong(asked.text() + ": index " + std::to_string(i) +
                            " was written, which is past the end of the array.\n" +
                            (n > 0 && by[0].block == nowhere
                                 ? "Element 0 was not computed: does your index begin with 1?"
                                 : why));
    }
};

const std::string too_many_threads =
    "The last block has more threads than there are elements left: a thread must check that its i "
    "is smaller than n before it touches memory, even if only to read.";

// Waits until the kernel is done; `hint` says what may have led to an error in it.
void wait(RememberingStream& stream, const std::string& hint) {
    try {
        stream.synchronize();
    } catch (const GpuError& error) {
        throw std::runtime_error(error.what() + ("\n" + hint));
    }
}

const std::string index_rule =
    "Element i belongs to the thread whose blockIdx.x * blockDim.x + threadIdx.x is i.";

void check_host_goes_on(const Case& asked, Stream& stream, const std::function<void()>& call) {
    const std::string wrong = wrong_if_host_waits(stream, call);
    stream.synchronize();
    if (!wrong.empty())
        throw Wrong(asked.text() + ": " + wrong);
}

// What is the same for scale and saxpy: one thread for each element.
void check_one_each(const Case& asked, const RememberingStream& stream, const Guarded& array,
                    const std::function<float(unsigned int i, int times)>& after,
                    const std::string& formula) {
    check_launch(asked, stream.launches);
    array.check_end(asked, too_many_threads);
    const std::vector<float> values = array.values.to_host_now();
    std::vector<Place> places = array.places.to_host_now();
    places.resize(asked.n);
    for (unsigned int i = 0; i < asked.n; i++) {
        check_times(asked, i, values[i], after, formula,
                    i > 0 && i + 1 == asked.n
                        ? "Only the last one is missing: does your bound leave it out?"
                    : i >= asked.threads
                        ? "It belongs to a later block. Do all blocks compute the same elements? " +
                              index_rule
                        : index_rule);
        check_place(asked, i, places, {i / asked.threads, i % asked.threads}, index_rule);
    }
    held();
}

// ---- The tasks

void check_scale(unsigned int blocks, unsigned int threads) {
    constexpr float factor = 2.5f;
    const unsigned int n = blocks * threads;
    const auto before = [](unsigned int i) { return static_cast<float>(i % 61 + 1); };
    const auto after = [&](unsigned int i, int times) {
        float value = before(i);
        for (int k = 0; k < times; k++)
            value *= factor;
        return value;
    };
    RememberingStream stream;
    Guarded array(n, 2 * threads, before);
    scale(n, threads, factor, array.values.data(), array.places.data(), stream);
    stream.synchronize();
    const Case asked{n, blocks, threads};
    check_one_each(asked, stream, array, after, "values[i] *= factor");
    check_host_goes_on(asked, stream, [&] {
        scale(n, threads, factor, array.values.data(), array.places.data(), stream);
    });
}

void check_saxpy(unsigned int n, unsigned int threads) {
    constexpr float a = -1.5f;
    const auto before = [](unsigned int i) { return static_cast<float>(i % 61); };
    const auto x_of = [](unsigned int i) { return static_cast<float>(i % 7 + 1); };
    const auto after = [&](unsigned int i, int times) {
        return before(i) + a * x_of(i) * static_cast<float>(times);
    };
    RememberingStream stream;
    Guarded array(n, 2 * threads, before);
    const Guarded x(n, 0, x_of);  // no room: reading past the end is an error as well
    saxpy(n, threads, a, x.values.data(), array.values.data(), array.places.data(), stream);
    wait(stream, too_many_threads);
    const Case asked{n, (n + threads - 1) / threads, threads};
    check_one_each(asked, stream, array, after, "y[i] += a * x[i]");
    check_host_goes_on(asked, stream, [&] {
        saxpy(n, threads, a, x.values.data(), array.values.data(), array.places.data(), stream);
    });
}

void check_differences(const Case& asked) {
    const unsigned int n = asked.n, grid = asked.blocks * asked.threads;
    const std::string rule = "With G threads in the grid, here " + std::to_string(grid) +
                             ", thread g takes the elements g, g + G, g + 2 G ...";
    const auto value_of = [](unsigned int i) { return static_cast<float>(i * i % 97 + i); };
    const auto after = [&](unsigned int i, int times) {
        return 5 + static_cast<float>(times) * (value_of(i + 1) - value_of(i));
    };
    RememberingStream stream;
    Guarded result(n - 1, grid + 2, [](unsigned int) { return 5; });
    const Guarded values(n, 0, value_of);
    add_differences(n, asked.blocks, asked.threads, values.values.data(), result.values.data(),
                    result.places.data(), stream);
    const std::string one_less = "n values have n - 1 differences: the last value has no next one.";
    wait(stream, one_less);
    check_launch(asked, stream.launches);
    result.check_end(asked, one_less);
    const std::vector<float> sums = result.values.to_host_now();
    std::vector<Place> places = result.places.to_host_now();
    places.resize(n - 1);
    for (unsigned int i = 0; i + 1 < n; i++) {
        check_times(
            asked, i, sums[i], after, "result[i] += values[i + 1] - values[i]",
            i > 0 && i + 2 == n ? "Only the last one is missing: does your bound leave it out?"
            : i >= grid ? "There are more elements than threads: each thread goes on with its "
                          "next element until there is none. " +
                              rule
                        : rule);
        check_place(asked, i, places, {i % grid / asked.threads, i % asked.threads}, rule);
    }
    check_host_goes_on(asked, stream, [&] {
        add_differences(n, asked.blocks, asked.threads, values.values.data(), result.values.data(),
                        result.places.data(), stream);
    });
    held();
}

void check_whole_blocks() {
    check_scale(3, 4);
    check_scale(1, 32);
    check_scale(7, 96);
}
void check_last_block() {
    for (const unsigned int n : {10u, 4u, 9u, 1u, 1009u})
        check_saxpy(n, 4);
    check_saxpy(1300, 256);
    check_saxpy(31, 32);
}
void check_few_threads() {
    check_differences({10, 1, 4});
    check_differences({100, 3, 8});
    check_differences({1024, 5, 32});
    check_differences({20, 4, 16});
    check_differences({1, 2, 4});
}

}  // namespace

std::vector<Task> tasks() {
    return {{"whole_blocks", check_whole_blocks},
            {"last_block", check_last_block},
            {"few_threads", check_few_threads}};
}

}  // namespace ddp::test
