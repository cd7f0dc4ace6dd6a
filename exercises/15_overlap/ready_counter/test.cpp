// The exercise ready_counter: steps in many orders, with a witness that knows what is ready.
#include "exercises/15_overlap/ready_counter.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Numbers = std::vector<int>;

const std::vector<Numbers> plans = {{1, 1, 0, 0}, {0}, {1, 1, 2, 0}, {1, 0, 2, 0, 1, 3, 2, 0}};

std::string list_of(const Numbers& numbers) {
    std::string text;
    for (const int number : numbers)
        text += (text.empty() ? "" : ", ") + std::to_string(number);
    return text.empty() ? "none" : text;
}

// Sees what is ready in a step and what is launched, and complains.
class Witness {
  public:
    explicit Witness(const Numbers& bucket_of)
        : bucket_of_(bucket_of), is_ready_(bucket_of.size()) {}

    // Returns what has happened in this step, and then `event`.
    std::string told(const std::string& event) const {
        return "Gradients lie in the buckets " + list_of(bucket_of_) +
               ". In this step these came: " + list_of(came_) + ". " + event + ": ";
    }
    // Before it, these gradients have become ready.
    void see(const std::string& event, const Launch& launch, const Numbers& ready,
             const Numbers& zeros = {}) {
        const std::string what = told(event);
        for (const int gradient : ready)
            is_ready_[static_cast<std::size_t>(gradient)] = true;
        if (zeros.empty())  // what becomes 0 has not come
            came_.insert(came_.end(), ready.begin(), ready.end());
        if (launch.zeros != zeros)
            throw Wrong(what + "you set the gradients " + list_of(launch.zeros) +
                        " to 0, and the unused ones are " + list_of(zeros) + "." +
                        cause_of_zeros(launch.zeros, zeros));
        for (const int bucket : launch.buckets) {
            const std::string yours = what + "you launch bucket " + std::to_string(bucket);
            if (bucket < next_)
                throw Wrong(yours + ", which is launched once more in this step.");
            if (bucket > next_)
                throw Wrong(yours + " before bucket " + std::to_string(next_) +
                            ". On another rank gradients come in another order: it launches them "
                            "the other way round, and both wait for ever.");
            if (!are_ready(bucket))
                throw Wrong(yours +
                            " before all of its gradients are ready. What is counted in a "
                            "step has to begin anew in the next one.");
            next_++;
        }
        if (next_ <= std::ranges::max(bucket_of_) && are_ready(next_))
            throw Wrong(what + "all gradients of bucket " + std::to_string(next_) +
                        " are ready, and all earlier buckets are on their way, but you don't "
                        "launch it. (Several buckets may have waited for one gradient.)");
    }

  private:
    static std::string cause_of_zeros(Numbers yours, const Numbers& right) {
        std::ranges::sort(yours);
        return yours == right ? " You have the right ones, in the wrong order: they should ascend."
               : std::ranges::includes(yours, right)
                   ? " The others have come: their gradients would be lost."
                   : " A bucket is sent whole: where nothing was written, it holds the last "
                     "step's numbers.";
    }
    bool are_ready(int bucket) const {
        for (std::size_t g = 0; g < bucket_of_.size(); g++)
            if (bucket_of_[g] == bucket && !is_ready_[g])
                return false;
        return true;
    }

    const Numbers& bucket_of_;
    Numbers came_;
    std::vector<bool> is_ready_;
    int next_ = 0;  // bucket
};

// Takes a step in which all but the last `unused` gradients come, in this order.
void see_step(ReadyCounter& counter, const Numbers& bucket_of, const Numbers& order,
              std::size_t unused) {
    Witness witness(bucket_of);
    witness.see("It begins", counter.begin_step(), {});
    const auto end = order.end() - static_cast<std::ptrdiff_t>(unused);
    for (auto gradient = order.begin(); gradient < end; gradient++) {
        const std::string event = "Gradient " + std::to_string(*gradient) + " comes";
        trying(witness.told(event) + "this is right. Does begin_step() begin all counting anew?");
        witness.see(event, counter.fire(*gradient), {*gradient});
    }
    if (unused == 0)
        return;
    Numbers rest(end, order.end());
    std::ranges::sort(rest);
    witness.see("Backward ends", counter.end_backward(), rest, rest);
}

Numbers random_order(std::size_t gradients, unsigned int seed) {
    Numbers order(gradients);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    return order;
}

void check_in_order() {
    for (const Numbers& bucket_of : plans) {
        const auto counter = make_ready_counter(bucket_of);
        for (unsigned int seed = 0; seed < 20; seed++)
            see_step(*counter, bucket_of, random_order(bucket_of.size(), seed), 0);
        for (std::size_t g = 0; g < bucket_of.size(); g++)
            try {
                trying("");
                counter->fire(static_cast<int>(g));
                throw Wrong("Gradient " + std::to_string(g) +
                            " comes a second time in a step: you accept that, and should throw "
                            "std::logic_error.");
            } catch (const std::logic_error&) {
            }
    }
}

void check_unused() {
    for (const Numbers& bucket_of : plans)
        for (unsigned int seed = 0; seed < 20; seed++) {
            const auto counter = make_ready_counter(bucket_of);
            for (const std::size_t unused : {1, 2, 0, 3})
                see_step(*counter, bucket_of, random_order(bucket_of.size(), seed * 4 + unused),
                         std::min(unused, bucket_of.size()));
        }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"in_order", check_in_order}, {"unused", check_unused}};
}

}  // namespace ddp::test
