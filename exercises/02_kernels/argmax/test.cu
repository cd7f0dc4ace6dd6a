// The exercise argmax: arrays that each ask one question, so that a wrong answer has a name; and
// the blocks and threads that share the work.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "exercises/02_kernels/argmax.hpp"
#include "exercises/support/launches.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr Largest untouched{nan_value, -123'456};  // what *result holds before a call

// One array, and what a wrong answer means.
struct Question {
    std::vector<float> values;
    std::string cause;
};

bool is_larger(float a, float b) {
    return std::isnan(a) ? !std::isnan(b) : a > b;
}
Largest right_answer(const std::vector<float>& values) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < values.size(); i++)
        if (is_larger(values[i], values[best]))
            best = i;
    return {values[best], static_cast<int>(best)};
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
                       "One of the values was not looked at, or an index does not belong to its "
                       "value."});
    std::vector<float> negative = with_largest_at(n, n - 1);
    for (float& value : negative)
        value = value == 5000 ? -1 : -2 - value;
    all.push_back(
        {negative, "All values are negative here: what a thread begins with must not win."});
    return all;
}

std::vector<Question> questions_of_ties_and_nan(std::size_t n) {
    std::vector<float> equal(n, 1);
    equal[n / 3] = equal[n / 2] = equal[n - 1] = 8;
    std::vector<float> one_nan = with_largest_at(n, 0);
    one_nan[n - 1] = nan_value;
    std::vector<float> two_nan = one_nan;
    two_nan[n / 3] = nan_value;
    return {{equal, "Three values are equal here: among equal values the lowest index wins."},
            {one_nan,
             "One value is NaN here: NaN wins against every number. (Every comparison with NaN is "
             "false, but NaN != NaN is true.)"},
            {two_nan, "Two values are NaN here: the one with the lower index wins."}};
}

std::string to_string(Largest answer) {
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

    void run() {
        const int n = static_cast<int>(values.size());
        if (blocks == 0)
            argmax_by_one_block(values.data(), n, block, result.data(), stream);
        else
            argmax_by_many_blocks(values.data(), n, blocks, block, scratch.data(), result.data(),
                                  stream);
        stream.synchronize();
    }

    const int blocks, block;
    Stream stream;
    Buffer<float> values;
    Buffer<Largest> scratch, result{std::vector<Largest>{untouched}};
};

// Returns what an answer shows that is none of the values, or "".
std::string cause_of(Largest answer, const std::vector<float>& values) {
    if (answer.index == untouched.index)
        return "That is what *result held before your call. Does a thread write the result?";
    if (answer.index < 0 || answer.index >= static_cast<int>(values.size()))
        return "There is no such index: what a thread begins with has won, or a thread has read "
               "shared memory or `scratch` where no value had been written yet.";
    return "";
}

void ask(const std::vector<Question>& all, int blocks, int block, const std::string& also = "") {
    for (const Question& question : all) {
        trying(question.cause + also);
        OneCall call(question.values, blocks, block);
        call.run();
        const Largest right = right_answer(question.values);
        const Largest answer = call.result.to_host_now()[0];
        const std::string cause = cause_of(answer, question.values);
        if (!is_same(answer, right))
            throw Wrong(std::to_string(question.values.size()) + " values, " +
                        (blocks > 0 ? std::to_string(blocks) + " blocks of " : "one block of ") +
                        std::to_string(block) + " threads: you say " + to_string(answer) +
                        ", right is " + to_string(right) + ".\n" +
                        (cause.empty() ? question.cause + also : cause));
        held();
    }
    trying("");
}
void ask(std::size_t n, int blocks, int block, const std::string& also = "") {
    ask(questions(n), blocks, block, also);
}

// Checks who has done the work.
void check_work(std::size_t n, int blocks, int block) {
    const std::string what = std::to_string(n) + " values";
    OneCall call(with_largest_at(n, n / 2), blocks, block);
    check_shape(static_cast<unsigned int>(std::max(blocks, 1)), static_cast<unsigned int>(block),
                what, [&] { call.run(); });
    check_shares(what, {read_by_all("values", call.values)}, [&] { call.run(); });
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
    for (const int block : {2, 3, 48, 100})
        ask(1009, 0, block, odd);
    check_work(1009, 0, 100);
}

void check_many_blocks() {
    ask(256, 4, 64);
    ask(20'011, 7, 96, " The values do not divide evenly among the blocks.");
    ask(40, 16, 32, " Most blocks have no value at all.");
    ask(49'920, 130, 64, " There are more blocks than threads in a block.");
    ask(5'003, 1, 1000, " There is only one block.");
    check_work(20'011, 7, 100);
}

void check_ties_and_nan() {
    ask(questions_of_ties_and_nan(1009), 0, 100);
    ask(questions_of_ties_and_nan(20'011), 7, 96);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"one_block", check_one_block},
            {"many_blocks", check_many_blocks},
            {"ties_and_nan", check_ties_and_nan}};
}

}  // namespace ddp::test
