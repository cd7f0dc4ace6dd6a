// The exercise captured_step. A step is known by what it leaves in device memory, where the order
// of its kernels shows; what must not happen at the same time, and what must, by kernels that look
// whether another has begun.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cuda/atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/gpu/clock.hpp"
#include "exercises/15_overlap/captured_step.hpp"
#include "exercises/support/launches.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

bool is_captured(Stream& stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    DDP_CHECK(cudaStreamIsCapturing(stream, &status));
    return status != cudaStreamCaptureStatusNone;
}

// ---- Task capture

// Not commutative: other kernels, or the same in another order, leave another number.
__global__ void append_digit(unsigned int* number, unsigned int digit) {
    *number = *number * 10 + digit;
}

// A step of a few kernels, each of which appends a digit.
class Digits {
  public:
    explicit Digits(std::vector<unsigned int> digits) : digits_(std::move(digits)) {}

    void enqueue(Stream& on) {
        calls++;
        for (const unsigned int digit : digits_)
            launch(on, {1, 1}, append_digit, number.data(), digit);
    }
    std::function<void()> step() {
        return [this] { enqueue(stream); };
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

// Checks what the constructor has left behind.
void check_is_captured_once(Digits& digits) {
    if (digits.calls != 1)
        throw Wrong("Your constructor calls enqueue() " + std::to_string(digits.calls) +
                    " times. By the contract it calls it once, and captures what it enqueues.");
    if (is_captured(digits.stream))
        throw Wrong(
            "When your constructor has returned, the stream is still captured: "
            "cudaStreamEndCapture ends that, and makes the graph.");
}

void check_constructor() {
    Digits digits({1, 2, 3});
    std::unique_ptr<CapturedStep> step;
    trying("The constructor of CapturedStep, with a step of three kernels.");
    const std::size_t launches =
        launches_in([&] {
            step = std::make_unique<CapturedStep>(digits.stream, digits.step());
            check_is_captured_once(digits);
        }).size();
    if (launches > 0 || digits.read() != 0)
        throw Wrong(
            "Kernels of the step have run while your constructor was at work. Between "
            "cudaStreamBeginCapture and cudaStreamEndCapture they are noted, and do not run.");
    held();

    trying("launch(), of a step of three kernels.");
    step->launch(digits.stream);
    digits.expect(123, "A step is captured and launched", "Has the graph been launched, once?");
    for (int i = 0; i < 2; i++)
        step->launch(digits.stream);
    digits.expect(123'123'123, "A step is captured once and launched three times",
                  "Each launch runs all of it once more.");
    if (digits.calls != 1)
        throw Wrong(
            "launch() calls enqueue() again. So the host enqueues each kernel anew, and nothing "
            "is saved: launch what was captured and instantiated in the constructor.");
    held();
    trying("");
}

// Checks launches on a stream whose work before has not ended.
void check_launch() {
    Digits digits({4, 5});
    CapturedStep step(digits.stream, digits.step());
    const Buffer<unsigned int> late(std::vector<unsigned int>{7});
    const std::string hint =
        "The 7 comes by a copy that stands on the same stream before the launch: launch on the "
        "stream that launch() is given.";
    check_host_goes_on("launch()", digits.stream, digits.number, late,
                       [&] { step.launch(digits.stream); });
    digits.expect(745, "launch() on the stream that was captured", hint);
}

// Checks that the stream and the thread are as they were before a capture that came to nothing.
void check_after_failure(Digits& digits, const std::string& what) {
    cudaGetLastError();  // which the failed call has left
    if (is_captured(digits.stream))
        throw Wrong(what +
                    ": your constructor throws, as it should, and leaves the stream captured. All "
                    "that is enqueued on it from now on would be noted and never run: end the "
                    "capture, and then throw on.");
    trying(what + ", your constructor has thrown, as it should. Then the stream is used again.");
    if (digits.read() != 0)
        throw Wrong(what + ": a kernel of the step has run, and by the contract none does.");
    const Buffer<float> allowed_again(1000);
    digits.enqueue(digits.stream);
    digits.expect(89, what + ", and then the stream is used without a graph",
                  "The stream is to be as it was.");
    trying("");
}

// Checks a step that CUDA refuses to capture.
void check_refused_step(const std::string& what, const std::function<void(Digits&)>& mistake,
                        const std::string& hint) {
    Digits digits({8, 9});
    trying(what + ".");
    try {
        const CapturedStep captured(digits.stream, [&] {
            digits.enqueue(digits.stream);
            mistake(digits);
        });
        throw Wrong(what + ": your constructor accepts it. " + hint);
    } catch (const GpuError&) {
        held();
    }
    check_after_failure(digits, what);
}

// Returns what goes wrong on a thread that works while another one captures, or "".
std::string work_beside_a_capture(Digits& digits) {
    try {
        const Buffer<float> memory(1000);
    } catch (const GpuError& error) {
        return std::string(
                   "While your constructor captures, another thread allocates memory, and CUDA "
                   "refuses it: ") +
               error.what() +
               "\nRanks are threads here, and they do not know of each other's captures. The mode "
               "of the capture says whom it forbids what.";
    }
    try {
        CapturedStep step(digits.stream, digits.step());
        step.launch(digits.stream);
        digits.stream.synchronize();
    } catch (const GpuError& error) {
        return std::string(
                   "Two threads capture at the same time, and one of them gets an error: ") +
               error.what();
    }
    return "";
}

void check_threads() {
    Digits mine({1, 2}), theirs({3, 4});
    std::promise<std::string> promise;
    std::future<std::string> done = promise.get_future();
    std::jthread other;
    bool is_in_time = false;
    trying("Two threads capture, each a step of its own.");
    std::string error;
    std::unique_ptr<CapturedStep> step;
    try {
        step = std::make_unique<CapturedStep>(mine.stream, [&] {
            mine.enqueue(mine.stream);
            other = std::jthread([&] { promise.set_value(work_beside_a_capture(theirs)); });
            is_in_time = done.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
        });
    } catch (const GpuError& failed) {
        error = failed.what();
    }
    if (const std::string wrong = done.get(); !wrong.empty())
        throw Wrong(wrong);
    if (!is_in_time)
        throw Wrong(
            "A thread cannot capture while another one does: it waits. By the contract captures do "
            "not disturb each other, and there is no need for a mutex." +
            may_be_busy);
    if (!error.empty())
        throw Wrong("Two threads capture at the same time, and one of them gets an error: " +
                    error);
    step->launch(mine.stream);
    mine.expect(12, "Two threads capture at the same time", "Each has a step of its own.");
    theirs.expect(34, "Two threads capture at the same time", "Each has a step of its own.");
    trying("");
}

void check_capture() {
    check_constructor();
    check_launch();
    check_refused_step(
        "A step waits for the stream that is captured",
        [](Digits& digits) { digits.stream.synchronize(); },
        "Nothing runs that it could wait for.");
    check_refused_step(
        "A step allocates memory while it is captured",
        [](Digits&) { const Buffer<float> of_one_step(1000); },
        "A launch would not allocate again, and use memory that is gone. The mode of the capture "
        "says what is forbidden.");
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

constexpr float unused_row = -1;

struct Sizes {
    int rows, columns, room;

    std::size_t inputs() const { return static_cast<std::size_t>(rows * columns); }
    int batches() const { return (rows + room - 1) / room; }
    int rows_of(int batch) const { return std::min(room, rows - batch * room); }
    std::string text() const {
        return std::to_string(rows) + " rows of " + std::to_string(columns) +
               ", a batch has up to " + std::to_string(room);
    }
};

// Encodes row and column.
float input_of(int row, int column) {
    return static_cast<float>(row % 97) * 0.25f + static_cast<float>(column) * 0.0625f -
           static_cast<float>(row / 97);
}
float target_of(int row) {
    return static_cast<float>(row % 31) * 0.5f + 1000;
}

// The epoch and the slot of a training.
class Batches {
  public:
    explicit Batches(const Sizes& sizes)
        : sizes(sizes),
          inputs(sizes.inputs()),
          targets(static_cast<std::size_t>(sizes.rows)),
          slot_inputs(
              std::vector<float>(static_cast<std::size_t>(sizes.room * sizes.columns), unused_row)),
          slot_targets(std::vector<float>(static_cast<std::size_t>(sizes.room), unused_row)) {
        std::vector<float> x, y;
        for (int row = 0; row < sizes.rows; row++) {
            for (int column = 0; column < sizes.columns; column++)
                x.push_back(input_of(row, column));
            y.push_back(target_of(row));
        }
        inputs.copy_from(x);
        targets.copy_from(y);
    }

    EpochRows epoch() const { return {inputs.data(), targets.data(), sizes.rows, sizes.columns}; }
    BatchSlot slot() { return {slot_inputs.data(), slot_targets.data(), rows.data(), sizes.room}; }
    void enqueue() { enqueue_next_batch(epoch(), slot(), number.data(), stream); }

    void set_number(int to) { number.copy_from(std::vector<int>{to}); }
    // Checks that the slot holds the batch, and that behind it comes the one that is right.
    void expect(int batch, const std::string& what, const std::string& hint);
    // Returns what it tells if the slot begins like another batch than this one, or "".
    std::string found(int right) const;

    const Sizes sizes;
    Stream stream;
    Buffer<float> inputs, targets, slot_inputs, slot_targets;
    Buffer<int> rows{std::vector<int>{-1}}, number{std::vector<int>{0}};
};

std::string Batches::found(int right) const {
    const float first = slot_inputs.to_host_now()[0];
    for (int batch = 0; batch < sizes.batches(); batch++)
        if (batch != right && first == input_of(batch * sizes.room, 0))
            return " The slot begins like batch " + std::to_string(batch) +
                   ": is the number counted on before it is used, or does the host keep it?";
    return "";
}

void Batches::expect(int batch, const std::string& what, const std::string& hint) {
    stream.synchronize();
    const std::string begin = sizes.text() + ". " + what + ": ";
    const std::vector<float> x = slot_inputs.to_host_now(), y = slot_targets.to_host_now();
    const int count = sizes.rows_of(batch), last = sizes.batches() - 1;
    const auto wrong = [&](const std::string& of, int row, float is, float right) {
        const std::string brought = row == 0 ? found(batch) : "";
        return Wrong(begin + of + " of row " + std::to_string(row) + " of the slot is " +
                     std::to_string(is) + ", right is " + std::to_string(right) + " of batch " +
                     std::to_string(batch) + "." + brought + "\n" + hint);
    };
    for (int row = 0; row < count; row++) {
        const int source = batch * sizes.room + row;
        for (int column = 0; column < sizes.columns; column++)
            if (const float is = x[static_cast<std::size_t>(row * sizes.columns + column)];
                is != input_of(source, column))
                throw wrong("input " + std::to_string(column), row, is, input_of(source, column));
        if (const float is = y[static_cast<std::size_t>(row)]; is != target_of(source))
            throw wrong("the target", row, is, target_of(source));
    }
    if (const int is = rows.to_host_now()[0]; is != count)
        throw Wrong(begin + "*slot.rows is " + std::to_string(is) + ", and batch " +
                    std::to_string(batch) + " has " + std::to_string(count) + " rows.\n" + hint);
    const int next = batch == last ? 0 : batch + 1;
    if (const int is = number.to_host_now()[0]; is != next)
        throw Wrong(begin + "behind batch " + std::to_string(batch) + " *number is " +
                    std::to_string(is) + ", right is " + std::to_string(next) + "; " +
                    std::to_string(sizes.batches()) + " batches are an epoch.\n" + hint);
    held();
}

const std::string by_the_device =
    "All that changes from launch to launch must be read from device memory by a kernel: the "
    "arguments of a kernel are copied when it is captured.";

void check_batches(const Sizes& sizes, const std::string& hint) {
    Batches batches(sizes);
    trying(sizes.text() + ". enqueue_next_batch() is called without a capture. " + hint);
    for (int step = 0; step < 2 * sizes.batches() + 1; step++) {
        const int batch = step % sizes.batches();
        // A row that is not replaced shows by what the slot had before.
        batches.slot_inputs.copy_from(std::vector<float>(batches.slot_inputs.size(), unused_row));
        batches.slot_targets.copy_from(std::vector<float>(batches.slot_targets.size(), unused_row));
        batches.enqueue();
        batches.expect(batch, "Call " + std::to_string(step), hint);
        const std::vector<float> x = batches.slot_inputs.to_host_now(),
                                 y = batches.slot_targets.to_host_now();
        const auto full = static_cast<std::size_t>(sizes.rows_of(batch));
        if (std::any_of(x.begin() + static_cast<std::ptrdiff_t>(full) * sizes.columns, x.end(),
                        [](float value) { return value != unused_row; }) ||
            std::any_of(y.begin() + static_cast<std::ptrdiff_t>(full), y.end(),
                        [](float value) { return value != unused_row; }))
            throw Wrong(sizes.text() + ". Batch " + std::to_string(batch) + " has " +
                        std::to_string(full) +
                        " rows, and rows of the slot behind them were written. Where would they "
                        "come from? The epoch has no more.");
    }
    trying("");
}

// Checks that the number is where the contract says.
void check_whose_number() {
    const Sizes sizes{10, 2, 3};
    Batches batches(sizes);
    batches.set_number(2);
    batches.enqueue();
    batches.expect(2, "In device memory stands the number 2",
                   "Is the number kept by the host? It is to be read, and counted on, where "
                   "`number` points to.");
}

void check_captured_batches() {
    const Sizes sizes{10, 2, 4};
    Batches batches(sizes);
    trying("A call of enqueue_next_batch() is captured.");
    CapturedStep step =
        captured(batches.stream, "enqueue_next_batch()",
                 "While a step is captured nothing runs, so there is no number that the host could "
                 "wait for and read: a kernel reads it.",
                 [&] { batches.enqueue(); });
    for (int i = 0; i < 2 * sizes.batches() + 1; i++) {
        step.launch(batches.stream);
        batches.expect(i % sizes.batches(),
                       "One call is captured, and launch " + std::to_string(i) + " of it has ended",
                       by_the_device);
    }
    trying("");
}

void check_batch_work() {
    const Sizes sizes{3000, 3, 1103};  // a batch has more rows than a block may have threads
    const std::string what = sizes.text() + ". enqueue_next_batch()";
    Batches batches(sizes);
    const auto work = [&] {
        batches.enqueue();
        batches.stream.synchronize();
    };
    check_kernels(what, work);
    check_shares(what, {written_by_all("slot.inputs", batches.slot_inputs)}, work);
}

void check_number() {
    check_batches({6, 1, 3}, "Batch k begins at row k * room, and all batches are full.");
    check_batches({6, 2, 3}, "A row has two inputs.");
    check_whose_number();
    check_batches({10, 3, 4}, "The last batch of the epoch has fewer rows.");
    check_batches({5, 2, 5}, "There is one batch, and it is full.");
    check_batches({5, 2, 8}, "There is one batch, and it is not full.");
    check_batches({4, 1, 1}, "Each row is a batch.");
    check_batches({1009, 3, 100}, "No number divides another one here.");
    check_captured_batches();
    check_batch_work();
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
        : buckets_(buckets), begun_(parts()), has_seen_(parts()), other_(parts(), nobody) {
        forget();
    }

    // Part `watcher` looks for `other`, for so long at most.
    void watch(int watcher, int other) { other_[static_cast<std::size_t>(watcher)] = other; }
    void set_patience(std::chrono::nanoseconds patience) { patience_ = patience; }

    void enqueue();
    void forget() {
        begun_.copy_from(std::vector<int>(parts(), 0));
        has_seen_.copy_from(std::vector<int>(parts(), 0));
    }
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
    void check_calls() const;

    const int buckets_;
    Buffer<int> begun_, has_seen_;
    std::vector<int> other_;
    std::chrono::nanoseconds patience_{0};
    struct Call {
        int part;
        bool is_on_its_stream;
    };
    std::vector<Call> calls_;  // of this step
};

StepPart WatchedStep::part(Kind kind, int bucket) {
    return [=, this](Stream& stream) {
        const int own = part_of(kind, bucket);
        const Stream& right = kind == sum ? communication : compute;
        calls_.push_back(
            {own, static_cast<cudaStream_t>(stream) == static_cast<cudaStream_t>(right)});
        launch(stream, {1, 1}, watching_part, own, other_[static_cast<std::size_t>(own)],
               static_cast<std::uint64_t>(patience_.count()), begun_.data(), has_seen_.data());
    };
}

void WatchedStep::enqueue() {
    calls_.clear();
    std::vector<BucketParts> all;
    for (int bucket = 0; bucket < buckets_; bucket++)
        all.push_back({part(backward, bucket), part(sum, bucket), part(update, bucket)});
    enqueue_step(all, compute, communication);
    check_calls();
}

void WatchedStep::check_calls() const {
    for (const Call& call : calls_)
        if (!call.is_on_its_stream)
            throw Wrong(text() + ": " + name_of(call.part) + " is enqueued on the wrong stream. " +
                        "Sums run on `communication`, and all else runs on `compute`.");
    for (int kind = 0; kind < kinds; kind++) {
        std::vector<int> buckets;
        for (const Call& call : calls_)
            if (call.part % kinds == kind)
                buckets.push_back(call.part / kinds);
        for (int bucket = 0; bucket < buckets_; bucket++)
            if (const auto times = std::ranges::count(buckets, bucket); times != 1)
                throw Wrong(text() + ": " + name_of(part_of(static_cast<Kind>(kind), bucket)) +
                            " is called " + std::to_string(times) + " times; right is once.");
        if (!std::ranges::is_sorted(buckets))
            throw Wrong(text() + ": " + name_of(part_of(static_cast<Kind>(kind), buckets[0])) +
                        " is called first. The order is that of the buckets, as on all ranks.");
    }
    held();
}

// Checks that each part has run once.
void check_runs(const WatchedStep& step, const std::string& what) {
    const std::vector<int> runs = step.runs();
    for (std::size_t part = 0; part < runs.size(); part++)
        if (runs[part] != 1)
            throw Wrong(step.text() + ", " + what + ": " + name_of(static_cast<int>(part)) +
                        " has run " + std::to_string(runs[part]) + " times; right is once.");
    held();
}

// Judges what the parts have seen of each other.
using Judge = std::function<void(const WatchedStep& step, const std::string& what)>;

// Captures the step, launches it, and judges; and then without a graph.
void run_watched(WatchedStep& step, const Judge& judge) {
    const std::string hint =
        "In a capture a stream belongs to it from when it has waited for an event of `compute`, "
        "and `compute` must in the end have waited for all of its work. No event from outside may "
        "be waited for, and the host waits for none.";
    trying(step.text() + ": enqueue_step() is captured, as one step of `compute`.");
    {
        CapturedStep graph =
            captured(step.compute, step.text() + ": the step", hint, [&] { step.enqueue(); });
        step.communication.synchronize();
        const std::vector<int> runs = step.runs();
        for (std::size_t part = 0; part < runs.size(); part++)
            if (runs[part] != 0)
                throw Wrong(step.text() + ": " + name_of(static_cast<int>(part)) +
                            " has run while the step was captured, and is not in the graph: its "
                            "stream was not captured then. " +
                            hint);
        graph.launch(step.compute);
        step.compute.synchronize();
        check_runs(step, "captured and launched");
        judge(step, "captured and launched");
    }
    step.forget();
    trying(step.text() + ": enqueue_step() is called without a capture.");
    step.enqueue();
    step.compute.synchronize();
    step.communication.synchronize();
    check_runs(step, "without a capture");
    judge(step, "without a capture");
    trying("");
}

// Checks that no part begins before the one of its bucket that it needs, which is of the kind
// `needed` and looks for it in vain.
void check_needs(int buckets, Kind needed) {
    WatchedStep step(buckets);
    step.set_patience(std::chrono::milliseconds(is_first_order() ? 100 : 5));
    for (int bucket = 0; bucket < buckets; bucket++)
        step.watch(part_of(needed, bucket), part_of(needed == backward ? sum : update, bucket));
    run_watched(step, [](const WatchedStep& seen, const std::string& what) {
        const std::vector<int> has_seen = seen.has_seen();
        for (std::size_t part = 0; part < has_seen.size(); part++)
            if (has_seen[part] != 0)
                throw Wrong(seen.text() + ", " + what + ": " + name_of(seen.other_of(part)) +
                            " has begun before " + name_of(static_cast<int>(part)) +
                            " has ended, which it needs. Which event does its stream wait for, and "
                            "where was that recorded last when it was told to wait?");
        held();
    });
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
    run_watched(step, [&](const WatchedStep& seen, const std::string& what) {
        const std::vector<int> has_seen = seen.has_seen();
        for (std::size_t part = 0; part < has_seen.size(); part++)
            if (seen.other_of(part) != nobody && has_seen[part] == 0)
                throw Wrong(seen.text() + ", " + what + ": " + name_of(static_cast<int>(part)) +
                            " does not run at the same time as " + name_of(seen.other_of(part)) +
                            ". Neither needs the other: does one of their streams wait for more "
                            "than it needs?" +
                            may_be_busy);
        held();
    });
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
