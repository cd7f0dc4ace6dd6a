// The exercise argmax: arrays that each ask one question, so that a wrong answer has a name; and
// who does the work: the blocks and threads of the contract, while the host goes on.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "exercises/02_kernels/argmax.hpp"
#include "exercises/support/launches.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr Largest untouched{nan_value, -123'456};  // what *result holds before a call

// One array, and what a wrong answer means.
struct Question {
    std::vector<float> values;
    const char* cause;
};

bool is_larger(float a, float b) {
    return std::isnan(a) ? !std::isnan(b) : a > b;
}
int right_index(const std::vector<float>& values) {
    int best = 0;
    for (int i = 1; i < static_cast<int>(values.size()); i++)
        if (is_larger(values[static_cast<std::size_t>(i)], values[static_cast<std::size_t>(best)]))
            best = i;
    return best;
}

// All different; the largest stands at `place`.
std::vector<float> with_largest_at(std::size_t n, std::size_t place) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; i++)
        values[i] = static_cast<float>(i * 7 % 1009) + static_cast<float>(i) / 4096;
    values[place] = 5000;
    return values;
}

std::vector<Question> questions(std::size_t n) {
    std::vector<Question> all;
    for (const std::size_t place : {std::size_t{0}, n / 3, n / 2, n - 1})
        all.push_back({with_largest_at(n, place),
                       "All values are different here, so one of them was not looked at, or an "
                       "index does not belong to its value."});
    std::vector<float> negative = with_largest_at(n, n - 1);
    for (float& value : negative)
        value = value == 5000 ? -1 : -2 - value;
    all.push_back(
        {negative, "All values are negative here: what a thread begins with must not win."});
    std::vector<float> equal(n, 1);
    equal[n / 3] = equal[n / 2] = equal[n - 1] = 8;
    all.push_back(
        {equal, "Several values are equal here: among equal values the lower index wins."});
    std::vector<float> zeros = negative;
    zeros[n - 1] = -2;
    zeros[n / 2] = 0;
    zeros[n / 3] = -0.0f;
    all.push_back({zeros,
                   "The largest values are -0.0 and 0.0 here. They are equal: compare them as "
                   "numbers, not by their bits; and among equal values the lower index wins."});
    std::vector<float> one_nan = with_largest_at(n, 0);
    one_nan[n - 1] = nan_value;
    all.push_back({one_nan,
                   "One value is NaN here: NaN is larger than every number. (Every "
                   "comparison with NaN is false; NaN != NaN is true.)"});
    one_nan[0] = n > 1 ? infinity : nan_value;
    all.push_back({one_nan,
                   "One value is infinity here, and one behind it is NaN, which is larger than "
                   "infinity, too, and not equal to it."});
    one_nan[n - 1] = std::copysign(nan_value, -1.0f);
    all.push_back(
        {one_nan,
         "One value is NaN here, with a sign: there are millions of NaN, with other bits. "
         "NaN != NaN is true for all of them."});
    std::vector<float> nans = with_largest_at(n, 0);
    nans[n / 3] = nans[n - 1] = nan_value;
    all.push_back({nans, "Two values are NaN here: the one with the lower index wins."});
    all.push_back({std::vector<float>(n, -infinity),
                   "All values are minus infinity here: the lower index wins, and what a thread "
                   "begins with must not."});
    return all;
}

std::string text_of(Largest answer) {
    char text[64];
    std::snprintf(text, sizeof text, "value %g at index %d", static_cast<double>(answer.value),
                  answer.index);
    return text;
}

bool is_same(Largest a, Largest b) {
    return a.index == b.index &&
           (a.value == b.value || (std::isnan(a.value) && std::isnan(b.value)));
}

// The memory of one call. How many blocks; 0: argmax_by_one_block.
struct OneCall {
    OneCall(const std::vector<float>& numbers, int blocks, int block)
        : blocks(blocks),
          block(block),
          values(numbers),
          scratch(static_cast<std::size_t>(blocks)) {}

    void enqueue() {
        const int n = static_cast<int>(values.size());
        if (blocks == 0)
            argmax_by_one_block(values.data(), n, block, result.data(), stream);
        else
            argmax_by_many_blocks(values.data(), n, blocks, block, scratch.data(), result.data(),
                                  stream);
    }
    Largest answer() {
        stream.synchronize();
        return result.to_host_now()[0];
    }

    const int blocks, block;
    Stream stream;
    Buffer<float> values;
    Buffer<Largest> scratch, result{std::vector<Largest>{untouched}};
};

Largest answer_to(const Question& question, int blocks, int block) {
    OneCall call(question.values, blocks, block);
    call.enqueue();
    return call.answer();
}

// Returns what an answer shows that is none of the values, or "".
const char* cause_of(Largest answer, const std::vector<float>& values) {
    if (answer.index == untouched.index)
        return "That is what *result held before your call: nobody has written to it by the time "
               "at which the stream has done its work. Is every kernel launched, and on the stream "
               "that you were given?";
    if (answer.index < 0 || answer.index >= static_cast<int>(values.size()))
        return "There is no such index. Either what a thread begins with has won against the "
               "values (which of two elements does your comparison return?), or it comes from "
               "shared memory or from `scratch` where nobody had written yet (is every kernel on "
               "the stream that you were given?).";
    return nullptr;
}

void ask(const std::vector<Question>& all, int blocks, int block, const std::string& also) {
    Largest before = untouched;  // the answer to the question before
    for (const Question& question : all) {
        trying(question.cause + also);
        const int index = right_index(question.values);
        const Largest right{question.values[static_cast<std::size_t>(index)], index};
        const Largest answer = answer_to(question, blocks, block);
        const char* cause = cause_of(answer, question.values);
        // Among NaNs a wrong rule gives it as well, and the question's own words say so.
        if (cause == nullptr && !std::isnan(right.value) && is_same(answer, before))
            cause =
                "That was the answer to the call before. Does something keep its value from one "
                "call to the next, such as a variable outside of your functions?";
        before = right;
        if (!is_same(answer, right))
            throw Wrong(std::to_string(question.values.size()) + " values, " +
                        (blocks > 0 ? std::to_string(blocks) + " blocks of " : "one block of ") +
                        std::to_string(block) + " threads: you say " + text_of(answer) +
                        ", right is " + text_of(right) + ".\n" +
                        (cause != nullptr ? cause : question.cause + also));
        held();
    }
    trying("");
}
void ask(std::size_t n, int blocks, int block, const std::string& also = "") {
    ask(questions(n), blocks, block, also);
}

// Checks that the threads share the values.
void check_readers(std::size_t n, int blocks, int block) {
    OneCall call(with_largest_at(n, n / 2), blocks, block);
    check_shares(std::to_string(n) + " values", {read_by_all("values", call.values)}, [&] {
        call.enqueue();
        call.stream.synchronize();
    });
}

// Checks who has done the work.
void check_work(std::size_t n, int blocks, int block) {
    const std::vector<float> numbers = with_largest_at(n, n / 2);
    const std::string what = std::to_string(n) + " values";
    OneCall call(numbers, blocks, block);
    check_shape(static_cast<unsigned int>(std::max(blocks, 1)), static_cast<unsigned int>(block),
                what, [&] {
                    call.enqueue();
                    call.stream.synchronize();
                });
    check_readers(n, blocks, block);
    held();
}

void check_one_block() {
    const std::string fewer = " There are fewer values than threads.";
    const std::string more = " There are more values than threads: each thread reads several.";
    const std::string odd =
        " The number of threads is not a power of two: does your tree lose the middle one when it "
        "halves an odd number?";
    ask(64, 0, 64);
    ask(19, 0, 64, fewer);
    ask(1, 0, 32, fewer);
    ask(1000, 0, 64, more);
    ask(777, 0, 1024, fewer);
    ask(2021, 0, 1, " There is only one thread, which reads all values.");
    for (const int block : {2, 3, 48, 96, 100, 1000})
        ask(1009, 0, block, odd);
    check_work(1009, 0, 100);
}

void check_many_blocks() {
    ask(256, 4, 64);
    ask(20'011, 7, 96, " No number divides another one here.");
    ask(40, 16, 32, " Most blocks have no value at all.");
    ask(50'000, 130, 64, " There are more blocks than threads in a block.");
    ask(2'200, 1'100, 2,
        " There are more blocks than a block may have threads: in the second pass each thread "
        "reads several.");
    ask(5'003, 1, 1000, " There is only one block.");
    check_work(20'011, 7, 100);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"one_block", check_one_block}, {"many_blocks", check_many_blocks}};
}

}  // namespace ddp::test
