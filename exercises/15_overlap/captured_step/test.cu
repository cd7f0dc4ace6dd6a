// The exercise captured_step. A step is known by what it leaves in device memory, where the order
// of its kernels shows; what must not happen at the same time, and what must, by kernels that look
// whether another has begun.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cuda/atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "common/gpu/captured_graph.hpp"
#include "common/gpu/clock.hpp"
#include "exercises/15_overlap/captured_step.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

// ---- Task capture

// Not commutative: other kernels, or the same in another order, leave another number.
__global__ void append_digit(unsigned int* number, unsigned int digit) {
    *number = *number * 10 + digit;
}

// A step of a few kernels, each of which appends a digit.
class Digits {
  public:
    explicit Digits(std::vector<unsigned int> digits) : digits_(std::move(digits)) {}

    void enqueue() {
        calls++;
        for (const unsigned int digit : digits_)
            launch(stream, {1, 1}, append_digit, number.data(), digit);
    }
    unsigned int read() {
        stream.synchronize();
        return number.to_host_now()[0];
    }
    // Checks the number. `what` begins the sentence, `hint` ends it.
    void expect(unsigned int right, const std::string& what, const std::string& hint) {
        if (const unsigned int found = read(); found != right)
            throw Wrong(
                what + ": the kernels of the step append the digits of a number, which is " +
                std::to_string(found) + ", right is " + std::to_string(right) + ".\n" + hint);
        held();
    }

    Stream stream;
    Buffer<unsigned int> number{std::vector<unsigned int>{0}};
    int calls = 0;  // of enqueue

  private:
    const std::vector<unsigned int> digits_;
};

void check_constructor() {
    Digits digits({1, 2, 3});
    trying("The constructor of CapturedStep, with a step of three kernels.");
    CapturedStep step(digits.stream, [&] { digits.enqueue(); });
    if (digits.calls != 1)
        throw Wrong("Your constructor calls enqueue() " + std::to_string(digits.calls) +
                    " times. It should call it once, and capture what it enqueues.");
    if (is_captured(digits.stream))
        throw Wrong(
            "When your constructor has returned, the stream is still captured: "
            "cudaStreamEndCapture ends that, and makes the graph.");
    if (digits.read() != 0)
        throw Wrong(
            "Kernels of the step have run in your constructor. Between cudaStreamBeginCapture and "
            "cudaStreamEndCapture they are noted, and don't run.");
    held();

    trying("launch(), of a step of three kernels.");
    step.launch(digits.stream);
    digits.expect(123, "A step is captured and launched", "Has the graph been launched, once?");
    for (int i = 0; i < 2; i++)
        step.launch(digits.stream);
    digits.expect(123'123'123, "A step is captured once and launched three times",
                  "Each launch runs all of it once more.");
    if (digits.calls != 1)
        throw Wrong(
            "launch() calls enqueue() again, so the host enqueues each kernel anew, and nothing "
            "is saved. Launch what the constructor has captured and instantiated.");
    held();
    trying("");
}

// Checks that another thread may allocate while this one captures.
void check_threads() {
    Digits digits({1, 2});
    std::string refusal;
    trying("A thread captures, and another one allocates memory meanwhile.");
    const auto allocate = [&] {
        try {
            const Buffer<float> memory(1000);
        } catch (const GpuError& error) {
            refusal = error.what();
        }
    };
    const auto step = [&] {
        digits.enqueue();
        std::thread(allocate).join();
    };
    try {
        CapturedStep captured(digits.stream, step);
        captured.launch(digits.stream);
    } catch (const GpuError& failed) {
        refusal += refusal.empty() ? failed.what() : "";
    }
    if (!refusal.empty())
        throw Wrong(
            "While your constructor captures, another thread allocates memory, and CUDA refuses "
            "it: " +
            refusal +
            "\nRanks are threads here, and they don't know of each other's captures. The mode of "
            "the capture says whose calls are forbidden.");
    digits.expect(12, "Another thread allocates while a step is captured",
                  "The launch runs all of the step.");
    trying("");
}

void check_capture() {
    check_constructor();
    check_threads();
}

// ---- What cannot be captured

// Captures a step by the reader's own class.
CapturedStep captured(Stream& stream, const std::string& what, const std::string& hint,
                      const std::function<void()>& enqueue) {
    try {
        return {stream, enqueue};
    } catch (const GpuError& error) {
        throw Wrong(what + " cannot be captured: " + error.what() + "\n" + hint);
    }
}

// ---- Task number

struct Sizes {
    int rows, columns, room;

    int batches() const { return (rows + room - 1) / room; }
    std::string text() const {
        return std::to_string(rows) + " rows of " + std::to_string(columns) +
               ", a batch has up to " + std::to_string(room);
    }
};

// Numbers from `first` on, all different.
std::vector<float> numbers(int first, int count) {
    std::vector<float> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), static_cast<float>(first));
    return all;
}

// The epoch and the slot of a training. At first the slot holds numbers below 0.
struct Batches {
    explicit Batches(const Sizes& of)
        : sizes(of),
          inputs(numbers(0, of.rows * of.columns)),
          targets(numbers(1'000'000, of.rows)),
          right_inputs(numbers(-of.room * of.columns, of.room * of.columns)),
          right_targets(numbers(-of.room, of.room)),
          epoch_inputs(inputs),
          epoch_targets(targets),
          slot_inputs(right_inputs),
          slot_targets(right_targets) {}

    void enqueue() {
        enqueue_next_batch({epoch_inputs.data(), epoch_targets.data(), sizes.rows, sizes.columns},
                           {slot_inputs.data(), slot_targets.data(), rows.data(), sizes.room},
                           number.data(), stream);
    }
    // Checks that the slot holds the batch, that its other rows are as before, and that batch
    // `batch` + 1 comes next.
    void expect(int batch, const std::string& what, const std::string& hint);

    const Sizes sizes;
    const std::vector<float> inputs, targets;        // of the epoch
    std::vector<float> right_inputs, right_targets;  // of the slot
    Stream stream;
    Buffer<float> epoch_inputs, epoch_targets, slot_inputs, slot_targets;
    Buffer<int> rows{std::vector<int>{-1}}, number{std::vector<int>{0}};
};

void Batches::expect(int batch, const std::string& what, const std::string& hint) {
    stream.synchronize();
    const std::string begin = sizes.text() + ". " + what + ": ";
    const int count = std::min(sizes.room, sizes.rows - batch * sizes.room);
    const auto compare = [&](const std::string& name, const std::vector<float>& found, int columns,
                             const std::vector<float>& epoch, std::vector<float>& right) {
        std::copy_n(epoch.begin() + batch * sizes.room * columns, count * columns, right.begin());
        const auto place =
            static_cast<int>(std::ranges::mismatch(found, right).in1 - found.begin());
        if (place >= count * columns && place < std::ssize(found))
            throw Wrong(begin + "batch " + std::to_string(batch) + " has " + std::to_string(count) +
                        " rows, and you have written more rows of the slot than that. Where do "
                        "they come from? The epoch has no more.");
        if (place < std::ssize(found))
            throw Wrong(
                begin + "the " + name + " of row " + std::to_string(place / columns) +
                " of the slot are not those of batch " + std::to_string(batch) +
                ". Is the number counted on before it is used, or does the host keep it?\n" + hint);
    };
    compare("inputs", slot_inputs.to_host_now(), sizes.columns, inputs, right_inputs);
    compare("targets", slot_targets.to_host_now(), 1, targets, right_targets);
    if (const int is = rows.to_host_now()[0]; is != count)
        throw Wrong(begin + "*slot.rows is " + std::to_string(is) + ", and batch " +
                    std::to_string(batch) + " has " + std::to_string(count) + " rows.\n" + hint);
    const int next = (batch + 1) % sizes.batches();
    if (const int is = number.to_host_now()[0]; is != next)
        throw Wrong(begin + "after batch " + std::to_string(batch) + " *number is " +
                    std::to_string(is) + ", and should be " + std::to_string(next) +
                    ": an epoch has " + std::to_string(sizes.batches()) + " batches.\n" + hint);
    held();
}

void check_batches(const Sizes& sizes, const std::string& hint) {
    Batches batches(sizes);
    trying(sizes.text() + ". enqueue_next_batch() is called without a capture. " + hint);
    for (int step = 0; step < 2 * sizes.batches() + 1; step++) {
        batches.enqueue();
        batches.expect(step % sizes.batches(), "Call " + std::to_string(step), hint);
    }
    trying("");
}

void check_captured_batches() {
    Batches batches({10, 2, 4});
    trying("A call of enqueue_next_batch() is captured.");
    CapturedStep step =
        captured(batches.stream, "enqueue_next_batch()",
                 "While a step is captured nothing runs, so there is no number that the host could "
                 "wait for and read: a kernel reads it.",
                 [&] { batches.enqueue(); });
    for (int i = 0; i < 7; i++) {
        step.launch(batches.stream);
        batches.expect(i % 3,
                       "One call is captured, and launch " + std::to_string(i) + " of it has ended",
                       "All that changes from launch to launch must be read from device memory by "
                       "a kernel: the arguments of a kernel are copied when it is captured.");
    }
    trying("");
}

void check_number() {
    check_batches({6, 1, 3}, "The case: all batches are full.");
    check_batches({10, 3, 4}, "The case: the last batch of the epoch has fewer rows.");
    check_batches({5, 2, 8}, "The case: there is one batch, and it is not full.");
    check_batches({3000, 3, 1103}, "The case: a batch has more rows than a block has threads.");
    check_captured_batches();
}

// ---- Task fork

// The parts of a step by number: kind + 3 * bucket.
enum Kind { backward, sum, update };
constexpr int kinds = 3;
constexpr int nobody = -1;
int part_of(Kind kind, int bucket) {
    return kind + kinds * bucket;
}
std::string name_of(int part) {
    const char* const names[] = {"backward", "the sum", "the update"};
    return names[part % kinds] + std::string(" of bucket ") + std::to_string(part / kinds);
}

// A part of a step: says that it has begun, and looks whether another one begins before it ends.
__global__ void watching_part(int own, int other, std::uint64_t patience_ns, int* begun,
                              int* has_seen) {
    using Count = cuda::atomic_ref<int, cuda::thread_scope_device>;
    Count(begun[own]).fetch_add(1, cuda::memory_order_acq_rel);
    const std::uint64_t start = device_clock_ns();
    while (other != nobody && has_seen[own] == 0 && device_clock_ns() - start < patience_ns) {
        has_seen[own] = Count(begun[other]).load(cuda::memory_order_acquire) != 0;
        __nanosleep(2000);
    }
}

// A step of such parts.
class WatchedStep {
  public:
    explicit WatchedStep(int buckets)
        : buckets_(buckets),
          begun_(std::vector<int>(parts(), 0)),
          has_seen_(std::vector<int>(parts(), 0)),
          other_(parts(), nobody) {}

    // Part `watcher` looks for `other`, for so long at most.
    void watch(int watcher, int other) { other_[static_cast<std::size_t>(watcher)] = other; }
    void set_patience(std::chrono::nanoseconds patience) { patience_ = patience; }

    void enqueue();
    // Returns how often each part has run, and whether it has seen the one that it looked for.
    std::vector<int> runs() const { return begun_.to_host_now(); }
    std::vector<int> has_seen() const { return has_seen_.to_host_now(); }
    int other_of(std::size_t part) const { return other_[part]; }
    std::size_t parts() const { return static_cast<std::size_t>(kinds * buckets_); }
    std::string text() const {
        return std::to_string(buckets_) + (buckets_ == 1 ? " bucket" : " buckets");
    }

    Stream compute, communication;

  private:
    StepPart part(Kind kind, int bucket);

    const int buckets_;
    Buffer<int> begun_, has_seen_;
    std::vector<int> other_;
    std::chrono::nanoseconds patience_{0};
};

StepPart WatchedStep::part(Kind kind, int bucket) {
    return [=, this](Stream& stream) {
        const int own = part_of(kind, bucket);
        const Stream& right = kind == sum ? communication : compute;
        if (static_cast<cudaStream_t>(stream) != static_cast<cudaStream_t>(right))
            throw Wrong(text() + ": " + name_of(own) + " is enqueued on the wrong stream. " +
                        "Sums run on `communication`, and all else runs on `compute`.");
        launch(stream, {1, 1}, watching_part, own, other_[static_cast<std::size_t>(own)],
               static_cast<std::uint64_t>(patience_.count()), begun_.data(), has_seen_.data());
    };
}

void WatchedStep::enqueue() {
    std::vector<BucketParts> all;
    for (int bucket = 0; bucket < buckets_; bucket++)
        all.push_back({part(backward, bucket), part(sum, bucket), part(update, bucket)});
    enqueue_step(all, compute, communication);
    held();
}

// Captures the step, launches it, and returns whether each part has seen the one that it looked
// for.
std::vector<int> run_watched(WatchedStep& step) {
    const std::string hint =
        "A stream joins a capture when it waits for an event of `compute`, and in the end "
        "`compute` has to wait for all of that stream's work.";
    trying(step.text() + ": enqueue_step() is captured, as one step of `compute`.");
    CapturedStep graph =
        captured(step.compute, step.text() + ": the step", hint, [&] { step.enqueue(); });
    step.communication.synchronize();
    const auto expect_runs = [&](int right, const std::string& when) {
        const std::vector<int> runs = step.runs();
        for (std::size_t part = 0; part < runs.size(); part++)
            if (runs[part] != right)
                throw Wrong(step.text() + ": " + name_of(static_cast<int>(part)) + when);
        held();
    };
    expect_runs(0,
                " has run while the step was captured, and is not in the graph: its stream was not "
                "captured then. " +
                    hint);
    graph.launch(step.compute);
    step.compute.synchronize();
    expect_runs(1, " has not run once, when the step was captured and launched once.");
    trying("");
    return step.has_seen();
}

// Checks that no part begins before the one of its bucket that it needs, which is of the kind
// `needed` and looks for it in vain.
void check_needs(int buckets, Kind needed) {
    WatchedStep step(buckets);
    step.set_patience(std::chrono::milliseconds(is_first_order() ? 100 : 5));
    for (int bucket = 0; bucket < buckets; bucket++)
        step.watch(part_of(needed, bucket), part_of(needed == backward ? sum : update, bucket));
    const std::vector<int> has_seen = run_watched(step);
    for (std::size_t part = 0; part < has_seen.size(); part++)
        if (has_seen[part] != 0)
            throw Wrong(step.text() + ": " + name_of(step.other_of(part)) + " has begun before " +
                        name_of(static_cast<int>(part)) +
                        " has ended, which it needs. Which event does its stream wait for, and "
                        "where was it recorded last before that?");
    held();
}

// Checks that these pairs of parts run at the same time: each looks for the other, and does not end
// before.
void check_together(int buckets, const std::vector<std::pair<int, int>>& pairs) {
    WatchedStep step(buckets);
    step.set_patience(std::chrono::seconds(3));
    for (const auto& [one, other] : pairs) {
        step.watch(one, other);
        step.watch(other, one);
    }
    const std::vector<int> has_seen = run_watched(step);
    for (std::size_t part = 0; part < has_seen.size(); part++)
        if (step.other_of(part) != nobody && has_seen[part] == 0)
            throw Wrong(step.text() + ": " + name_of(static_cast<int>(part)) +
                        " does not run at the same time as " + name_of(step.other_of(part)) +
                        ". Neither needs the other. Does a stream wait for more than it has to?" +
                        may_be_busy);
    held();
}

void check_overlap(int buckets) {
    std::vector<std::pair<int, int>> pairs;
    for (int bucket = 0; bucket + 1 < buckets; bucket++)
        pairs.emplace_back(part_of(sum, bucket), part_of(backward, bucket + 1));
    pairs.emplace_back(part_of(sum, buckets - 1), part_of(update, buckets - 2));
    check_together(buckets, pairs);
}

void check_fork() {
    for (const int buckets : {1, 2, 3})
        for (const Kind needed : {backward, sum})
            check_needs(buckets, needed);
    check_overlap(2);
    check_overlap(3);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"capture", check_capture}, {"number", check_number}, {"fork", check_fork}};
}

}  // namespace ddp::test
