// The exercise argmax: arrays that each ask one question, so that a wrong answer has a name.
#include <algorithm>
#include <cmath>

#include "exercises/02_kernels/argmax.hpp"
#include "exercises/support/launches.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr Largest untouched{NAN, -123'456};  // what *result holds before a call

// One array, and what a wrong answer means.
struct Question {
    std::vector<float> values;
    Largest right;
    std::string cause;
};

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
                       {5000, static_cast<int>(place)},
                       "A value was not looked at, or an index does not belong to its value."});
    std::vector<float> negative = with_largest_at(n, n - 1);
    for (float& value : negative)
        value = value == 5000 ? -1 : -2 - value;
    all.push_back({negative,
                   {-1, static_cast<int>(n) - 1},
                   "All values are negative here: what a thread begins with must not win."});
    return all;
}

std::vector<Question> questions_of_ties_and_nan(std::size_t n) {
    std::vector<float> equal(n, 1);
    equal[n / 3] = equal[n / 2] = equal[n - 1] = 8;
    std::vector<float> one_nan = with_largest_at(n, 0);
    one_nan[n - 1] = NAN;
    std::vector<float> two_nan = one_nan;
    two_nan[n / 3] = NAN;
    const int third = static_cast<int>(n / 3), last = static_cast<int>(n) - 1;
    return {{equal,
             {8, third},
             "Three values are equal here: among equal values the lowest index wins."},
            {one_nan,
             {NAN, last},
             "One value is NaN here: NaN wins against every number. (Every comparison with NaN is "
             "false, but NaN != NaN is true.)"},
            {two_nan, {NAN, third}, "Two values are NaN here: the one with the lower index wins."}};
}

// Returns what the reader's function writes. How many blocks; 0: argmax_by_one_block.
Largest answer_to(const std::vector<float>& numbers, int blocks, int block) {
    Stream stream;
    const Buffer<float> values(numbers);
    Buffer<Largest> scratch(static_cast<std::size_t>(blocks)), result(std::vector{untouched});
    const int n = static_cast<int>(values.size());
    if (blocks == 0)
        argmax_by_one_block(values.data(), n, block, result.data(), stream);
    else
        argmax_by_many_blocks(values.data(), n, blocks, block, scratch.data(), result.data(),
                              stream);
    stream.synchronize();
    return result.to_host_now()[0];
}

std::string text(Largest answer) {
    return "{" + std::to_string(answer.value) + ", " + std::to_string(answer.index) + "}";
}

void ask(const std::vector<Question>& all, int blocks, int block, const std::string& also = "") {
    for (const auto& [values, right, cause] : all) {
        trying(cause + also);
        const Largest answer = answer_to(values, blocks, block);
        const bool is_right =
            answer.index == right.index &&
            (answer.value == right.value || (std::isnan(answer.value) && std::isnan(right.value)));
        const bool is_index = answer.index >= 0 && answer.index < std::ssize(values);
        if (!is_right)
            throw Wrong(std::to_string(values.size()) + " values, " +
                        std::to_string(std::max(blocks, 1)) + " blocks of " +
                        std::to_string(block) + " threads: you say " + text(answer) +
                        ", right is " + text(right) + ".\n" +
                        (answer.index == untouched.index
                             ? "That is what *result held before: does a thread write it?"
                         : is_index ? cause + also
                                    : "There is no such index: what a thread begins with has won, "
                                      "or memory was read that nobody had written."));
    }
}
// Checks that the blocks and threads of the contract do the work together.
void check_work(std::size_t n, int blocks, int block) {
    check_shape(static_cast<unsigned int>(std::max(blocks, 1)), static_cast<unsigned int>(block),
                std::to_string(n) + " values",
                [&] { answer_to(with_largest_at(n, n / 2), blocks, block); });
}

void check_one_block() {
    const std::string fewer = " There are fewer values than threads.";
    const std::string more = " There are more values than threads: each thread reads several.";
    const std::string odd =
        " The number of threads is not a power of two: does your tree lose the middle one when it "
        "halves an odd number?";
    ask(questions(64), 0, 64);
    ask(questions(19), 0, 64, fewer);
    ask(questions(1), 0, 32, fewer);
    ask(questions(1000), 0, 64, more);
    ask(questions(777), 0, 1024, fewer);
    ask(questions(2021), 0, 1, " There is only one thread, which reads all values.");
    for (const int block : {2, 3, 48, 100})
        ask(questions(1009), 0, block, odd);
    check_work(1009, 0, 100);
}

void check_many_blocks() {
    ask(questions(256), 4, 64);
    ask(questions(20'011), 7, 96, " The values do not divide evenly among the blocks.");
    ask(questions(40), 16, 32, " Most blocks have no value at all.");
    ask(questions(49'920), 130, 64, " There are more blocks than threads in a block.");
    ask(questions(5'003), 1, 1000, " There is only one block.");
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
