// The exercise join_in: one thread per rank, and a sum that knows when a rank will never come.
#include "exercises/17_unused_parameters/join_in.hpp"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Numbers = std::vector<double>;

std::string text(const Numbers& values) {
    std::string all;
    for (const double value : values)
        all += (all.empty() ? "" : ", ") + std::to_string(value);
    return "(" + all + ")";
}
std::string rank_name(int rank) {
    return "rank " + std::to_string(rank);
}
std::string text(const std::vector<int>& batches) {
    std::string all;
    for (const int count : batches)
        all += (all.empty() ? "" : ", ") + std::to_string(count);
    return "The ranks have " + all + " batches. ";
}

// Where all ranks add up. Once it is broken, all calls throw what broke it.
class Coordinator {
  public:
    Coordinator(int ranks, int max_sums) : ranks_(ranks), max_sums_(max_sums) {}

    void add(int rank, Numbers& numbers) {
        std::unique_lock lock(mutex_);
        if (came_ == 0)
            sums_.assign(numbers.size(), 0);
        if (numbers.size() != sums_.size())
            fail("In sum " + std::to_string(done_ + 1) + " " + rank_name(rank) + " brings " +
                 std::to_string(numbers.size()) + " numbers, and another rank " +
                 std::to_string(sums_.size()) +
                 ": all ranks must be at the same sum. (A rank without a batch brings as many "
                 "zeros, and validates when the others do.)");
        if (done_ == max_sums_)
            fail(
                "This is sum " + std::to_string(done_ + 1) + ", and " + std::to_string(max_sums_) +
                " are enough: one per step, one per validation, and one at the end. How many ranks "
                "have a batch can travel with the gradients.");
        throw_if_broken();
        for (std::size_t i = 0; i < numbers.size(); i++)
            sums_[i] += numbers[i];
        const int mine = done_;
        came_++;
        look();
        changed_.wait(lock, [&] { return done_ > mine || !broken_.empty(); });
        if (done_ == mine)
            throw_if_broken();
        numbers = result_;
    }
    void leave() {
        const std::lock_guard lock(mutex_);
        left_++;
        look();
    }

  private:
    void look() {
        if (came_ == ranks_) {
            result_ = sums_;
            came_ = 0;
            done_++;
        } else if (came_ > 0 && came_ + left_ == ranks_ && broken_.empty()) {
            broken_ = std::to_string(left_) + " of " + std::to_string(ranks_) +
                      " ranks returned after " + std::to_string(done_) +
                      " sums, and the others wait in the next one for ever: a rank without a batch "
                      "must take part in every sum that the others need.";
        }
        changed_.notify_all();
    }
    void fail(const std::string& why) {
        if (broken_.empty())
            broken_ = why;
        changed_.notify_all();
    }
    void throw_if_broken() const {
        if (!broken_.empty())
            throw Wrong(broken_);
    }

    const int ranks_, max_sums_;
    std::mutex mutex_;
    std::condition_variable changed_;
    Numbers sums_, result_;
    int came_ = 0, left_ = 0, done_ = 0;
    std::string broken_;
};

// ---- What is learnt, in tenths that tell ranks and batches apart

Numbers gradient_of(int rank, int batch, const Numbers& parameters) {
    Numbers gradient;
    for (std::size_t i = 0; i < parameters.size(); i++)
        gradient.push_back(0.1 * parameters[i] + rank + 1 + 10 * (batch + 1) +
                           100 * static_cast<double>(i));
    return gradient;
}
double loss_of(int rank, const Numbers& parameters) {
    return std::abs(parameters[0]) + rank;
}

int most_of(const std::vector<int>& batches) {
    int most = 0;
    for (const int count : batches)
        most = std::max(most, count);
    return most;
}

// How an answer goes, right or wrong.
struct Variation {
    std::string words;  // what the student is told about it
    std::function<double(double ranks, double active)> divisor;
    bool stops_early = false;  // when the first rank has no batch left
};

JoinResult in_one_thread(const std::vector<int>& batches, const JoinTraining& training,
                         const Numbers& begin, const Variation& how) {
    JoinResult right{begin, {}};
    const auto ranks = static_cast<double>(batches.size());
    const int steps = how.stops_early ? std::ranges::min(batches) : most_of(batches);
    for (int step = 0; step < steps; step++) {
        Numbers sum(begin.size(), 0);
        double active = 0;
        for (std::size_t rank = 0; rank < batches.size(); rank++) {
            if (step >= batches[rank])
                continue;
            active++;
            const Numbers one = gradient_of(static_cast<int>(rank), step, right.parameters);
            for (std::size_t i = 0; i < sum.size(); i++)
                sum[i] += one[i];
        }
        for (std::size_t i = 0; i < sum.size(); i++)
            right.parameters[i] -= training.learning_rate * sum[i] / how.divisor(ranks, active);
        if (training.validate_every == 0 || (step + 1) % training.validate_every != 0)
            continue;
        double loss = 0;
        for (std::size_t rank = 0; rank < batches.size(); rank++)
            loss += loss_of(static_cast<int>(rank), right.parameters);
        right.validations.push_back(loss / ranks);
    }
    return right;
}

double all_ranks(double ranks, double) {
    return ranks;
}
double those_with_a_batch(double, double active) {
    return active;
}
Variation as_told(Divisor divisor) {
    return {"", divisor == Divisor::all_ranks ? all_ranks : those_with_a_batch};
}

// Mistakes that show in the numbers.
const std::vector<Variation> mistakes = {
    {"You divide by the number of all ranks, whatever training.divisor says.", all_ranks},
    {"You divide by the number of ranks that have a batch, whatever training.divisor says.",
     those_with_a_batch},
    {"You don't divide the sum of the gradients by anything.", [](double, double) { return 1.0; }},
    {.words = "You stop when the FIRST rank has no batch left; the batches of the others are lost.",
     .divisor = all_ranks,
     .stops_early = true}};

// ---- Running it

JoinResult run_rank(int rank, int batches, JoinTraining training, const Numbers& begin,
                    Coordinator& coordinator) {
    const RankData data{batches, [=](int batch, const Numbers& parameters) {
                            if (batch < 0 || batch >= batches)
                                throw Wrong(rank_name(rank) + " has " + std::to_string(batches) +
                                            " batches, and you ask for batch " +
                                            std::to_string(batch) + ", counted from 0.");
                            return gradient_of(rank, batch, parameters);
                        }};
    if (training.validate_every > 0)
        training.validation_loss = [=](const Numbers& parameters) {
            return loss_of(rank, parameters);
        };
    return train_joined(data, training, begin,
                        [&](Numbers& numbers) { coordinator.add(rank, numbers); });
}

std::vector<JoinResult> run_ranks(const std::vector<int>& batches, const JoinTraining& training,
                                  const Numbers& begin) {
    const int steps = most_of(batches);
    const int validations = training.validate_every > 0 ? steps / training.validate_every : 0;
    const auto ranks = batches.size();
    Coordinator coordinator(static_cast<int>(ranks), steps + validations + 1);
    std::vector<JoinResult> results(ranks);
    std::vector<std::exception_ptr> causes(ranks);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ranks; i++)
        threads.emplace_back([&, i] {
            try {
                results[i] =
                    run_rank(static_cast<int>(i), batches[i], training, begin, coordinator);
            } catch (...) {
                causes[i] = std::current_exception();
            }
            coordinator.leave();
        });
    for (std::thread& thread : threads)
        thread.join();
    // A rank that asked for a wrong batch is the cause, not those that then wait for it.
    std::exception_ptr first;
    for (const std::exception_ptr& cause : causes)
        try {
            if (cause)
                std::rethrow_exception(cause);
        } catch (const Wrong& wrong) {
            const bool is_waiting = std::string(wrong.what()).find("for ever") != std::string::npos;
            first = !first || !is_waiting ? cause : first;
        } catch (...) {
            first = cause;
        }
    if (first)
        std::rethrow_exception(first);
    return results;
}

bool are_close(const Numbers& a, const Numbers& b) {
    if (a.size() != b.size())
        return false;
    for (std::size_t i = 0; i < a.size(); i++)
        if (!(std::abs(a[i] - b[i]) <= 1e-9 * (1 + std::abs(b[i]))))
            return false;
    return true;
}

// Returns what a wrong result's parameters tell of its mistake, or "".
std::string cause_of(const JoinResult& yours, const std::vector<int>& batches,
                     const JoinTraining& training, const Numbers& begin) {
    for (const Variation& mistake : mistakes)
        if (are_close(in_one_thread(batches, training, begin, mistake).parameters,
                      yours.parameters))
            return " " + mistake.words;
    return "";
}

// The same for wrong validations; the parameters are right.
std::string cause_of_validations(int rank, const JoinResult& yours, const JoinResult& right,
                                 const JoinTraining& training) {
    if (yours.validations.size() != right.validations.size())
        return " You say " + std::to_string(yours.validations.size()) + " validations, right are " +
               std::to_string(right.validations.size()) +
               ": after steps validate_every, 2 * validate_every, ..., counted from 1.";
    Numbers sums, own;
    for (const double loss : right.validations) {
        own.push_back(loss - (training.ranks - 1) / 2.0 + rank);
        sums.push_back(loss * training.ranks);
    }
    if (are_close(own, yours.validations))
        return " These are the rank's own losses, and not the mean over all ranks.";
    if (are_close(sums, yours.validations))
        return " These are sums over the ranks: divide them by the number of ALL ranks.";
    return "";
}

void check(const std::vector<int>& batches, JoinTraining training, const std::string& hint) {
    training.ranks = static_cast<int>(batches.size());
    training.learning_rate = 0.125;
    const Numbers begin{1, -2, 4};
    trying(text(batches) + "validate_every is " + std::to_string(training.validate_every) + ". " +
           hint);
    std::vector<JoinResult> results;
    try {
        results = run_ranks(batches, training, begin);
    } catch (const Wrong& wrong) {
        throw Wrong(text(batches) + wrong.what());
    }
    const Variation told = as_told(training.divisor);
    const JoinResult right = in_one_thread(batches, training, begin, told);
    for (std::size_t i = 0; i < results.size(); i++) {
        const std::string who = text(batches) + "At the end " + rank_name(static_cast<int>(i));
        if (i > 0 && results[i].parameters != results[0].parameters)
            throw Wrong(who + " has the parameters " + text(results[i].parameters) +
                        ", and rank 0 has " + text(results[0].parameters) +
                        ": all must take each step alike.\n" + hint);
        if (!are_close(results[i].parameters, right.parameters))
            throw Wrong(who + " has the parameters " + text(results[i].parameters) +
                        "; right are " + text(right.parameters) + "." +
                        cause_of(results[i], batches, training, begin) + "\n" + hint);
        if (!are_close(results[i].validations, right.validations))
            throw Wrong(who + " has the validation losses " + text(results[i].validations) +
                        "; right are " + text(right.validations) + "." +
                        cause_of_validations(static_cast<int>(i), results[i], right, training) +
                        "\n" + hint);
    }
}

void check_divisor(Divisor divisor) {
    check({2, 2}, {.divisor = divisor}, "The case: both ranks have a batch in each step.");
    check({3, 1}, {.divisor = divisor},
          divisor == Divisor::all_ranks
              ? "The case: rank 1 has one batch. Then it brings zeros, and counts as before."
              : "The case: rank 1 has one batch. Then it doesn't count any more.");
    check({0, 4, 2}, {.divisor = divisor}, "The case: rank 0 has no batch at all.");
    check({2, 7, 7, 1}, {.divisor = divisor}, "The case: four ranks.");
    check({0, 0}, {.divisor = divisor}, "The case: no rank has a batch, so there is no step.");
    check({5}, {.divisor = divisor}, "The case: one rank.");
}

void check_validate() {
    check({4, 4}, {.validate_every = 2}, "The case: four batches each, so two validations.");
    check({1, 6}, {.validate_every = 2},
          "The case: rank 0 has no batch left, but still its part of the validation data.");
    check({5, 0, 2}, {.divisor = Divisor::ranks_with_a_batch, .validate_every = 3},
          "The case: three ranks. A validation is a mean over all of them, whatever the divisor.");
    check({2, 3}, {.validate_every = 1}, "The case: a validation after every step.");
    check({2, 3}, {.validate_every = 9}, "The case: fewer steps than that, so no validation.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"together", [] { check_divisor(Divisor::all_ranks); }},
            {"divisor", [] { check_divisor(Divisor::ranks_with_a_batch); }},
            {"validate", check_validate}};
}

}  // namespace ddp::test
