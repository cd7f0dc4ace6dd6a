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

std::string list_of(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers)
        text += (text.empty() ? "" : ", ") + std::to_string(number);
    return text.empty() ? "none" : text;
}

// Sees what is ready in a step and what is launched, and complains.
class Witness {
  public:
    Witness(std::vector<int> bucket_of, std::string about)
        : bucket_of_(std::move(bucket_of)),
          about_(std::move(about)),
          is_ready_(bucket_of_.size()),
          buckets_(std::ranges::max(bucket_of_) + 1) {}

    // `zeros` are ready before any has come.
    void see_step(const Launch& launch, const std::vector<int>& zeros) {
        step_++;
        next_ = 0;
        is_ready_.assign(bucket_of_.size(), false);
        for (const int gradient : zeros)
            is_ready_[static_cast<std::size_t>(gradient)] = true;
        history_.clear();
        see(launch, "When step " + std::to_string(step_) + " begins", zeros);
    }
    void see_fire(const Launch& launch, int gradient, bool is_ready) {
        history_ += (history_.empty() ? "" : ", ") + std::to_string(gradient);
        if (is_ready)
            is_ready_[static_cast<std::size_t>(gradient)] = true;
        see(launch, "Step " + std::to_string(step_) + ", the gradients " + history_ + " have come",
            {});
    }
    // All that have not come before are ready now.
    void see_end(const Launch& launch, const std::vector<int>& zeros) {
        is_ready_.assign(bucket_of_.size(), true);
        see(launch,
            "Step " + std::to_string(step_) + ", backward has ended, and these have come: " +
                (history_.empty() ? "none" : history_),
            zeros);
    }
    std::string when_comes(int gradient) const {
        return "Step " + std::to_string(step_) + ", gradient " + std::to_string(gradient) +
               " comes after (" + history_ + ")";
    }
    [[noreturn]] void fail(const std::string& when, const std::string& what) const {
        throw Wrong(told(when) + ": " + what);
    }
    std::string told(const std::string& when) const {
        return about_ + "; gradients lie in the buckets " + list_of(bucket_of_) + ".\n" + when;
    }

  private:
    void see(const Launch& launch, const std::string& when, const std::vector<int>& zeros) {
        if (launch.zeros != zeros)
            fail(when, "you set the gradients " + list_of(launch.zeros) +
                           " to 0, and the unused ones are " + list_of(zeros) +
                           ". (A bucket is sent whole: where nothing was written, it holds the "
                           "last step's numbers.)" +
                           cause_of_zeros(launch.zeros, zeros));
        for (const int bucket : launch.buckets)
            see_launch(bucket, when);
        if (next_ < buckets_ && all_ready(next_))
            fail(when, "all gradients of bucket " + std::to_string(next_) +
                           " are ready, and all earlier buckets are on their way, but you don't "
                           "launch it. (Several buckets may have waited for one gradient.)" +
                           of_another_step());
    }
    static std::string cause_of_zeros(std::vector<int> yours, const std::vector<int>& right) {
        std::ranges::sort(yours);
        if (yours == right)
            return " You have the right ones, in the wrong order: they should ascend.";
        if (std::ranges::includes(yours, right))
            return right.empty()
                       ? " None is unused now: either all have come, or it is not known yet, or "
                         "they were set to 0 when the step began."
                       : " The others have come: their gradients would be lost.";
        return "";
    }
    void see_launch(int bucket, const std::string& when) {
        if (bucket < next_)
            fail(when, "bucket " + std::to_string(bucket) + " is launched once more in this step.");
        if (bucket > next_)
            fail(when,
                 "you launch bucket " + std::to_string(bucket) + " before bucket " +
                     std::to_string(next_) +
                     ". On another rank gradients come in another order: it launches them the "
                     "other way round, and both wait for ever.");
        if (!all_ready(bucket))
            fail(when, "you launch bucket " + std::to_string(bucket) +
                           " before all of its gradients are ready. (A gradient is ready when its "
                           "hook has fired for the last time in the step.)" +
                           of_another_step());
        next_++;
    }
    std::string of_another_step() const {
        return step_ > 1 ? " What is counted in a step has to begin anew in the next one." : "";
    }
    bool all_ready(int bucket) const {
        for (std::size_t g = 0; g < bucket_of_.size(); g++)
            if (bucket_of_[g] == bucket && !is_ready_[g])
                return false;
        return true;
    }

    const std::vector<int> bucket_of_;
    const std::string about_;
    std::vector<bool> is_ready_;
    const int buckets_;
    int next_ = 0, step_ = 0;
    std::string history_;
};

const std::vector<std::vector<int>> plans = {
    {1, 1, 0, 0}, {0}, {1, 1, 2, 0}, {1, 0, 2, 0, 1, 3, 2, 0}};

std::vector<int> in_random_order(std::vector<int> gradients, unsigned int seed) {
    std::shuffle(gradients.begin(), gradients.end(), std::mt19937(seed));
    return gradients;
}
std::vector<int> all_of(const std::vector<int>& bucket_of) {
    std::vector<int> all(bucket_of.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
}

// Returns what a call that is right in this step returns. An exception of the student's is told
// together with its likely cause.
template <class Call>
Launch allowed(const Witness& witness, const std::string& when, const Call& call) {
    trying(witness.told(when) + ".");
    try {
        return call();
    } catch (const std::logic_error& error) {
        witness.fail(when, "your code throws std::logic_error (\"" + std::string(error.what()) +
                               "\"), but this is right here. Does begin_step() begin all counting "
                               "anew?");
    }
}
Launch begin_step(const Witness& witness, ReadyCounter& counter) {
    return allowed(witness, "A step begins", [&] { return counter.begin_step(); });
}
Launch fire(const Witness& witness, ReadyCounter& counter, int gradient) {
    return allowed(witness, witness.when_comes(gradient), [&] { return counter.fire(gradient); });
}
Launch end_backward(const Witness& witness, ReadyCounter& counter) {
    return allowed(witness, "Backward ends", [&] { return counter.end_backward(); });
}

template <class Call>
void require_refused(const Witness& witness, const std::string& when, const Call& call) {
    trying(witness.told(when) + ": you should throw std::logic_error.");
    try {
        call();
    } catch (const std::logic_error&) {
        return;
    }
    witness.fail(when, "you accept that, and should throw std::logic_error.");
}

// ---- Task in_order

void check_in_order() {
    for (const std::vector<int>& bucket_of : plans) {
        Witness witness(bucket_of, "Every gradient comes once");
        const auto counter = make_ready_counter(bucket_of);
        for (unsigned int step = 0; step < 20; step++) {
            witness.see_step(begin_step(witness, *counter), {});
            for (const int gradient : in_random_order(all_of(bucket_of), step))
                witness.see_fire(fire(witness, *counter, gradient), gradient, true);
        }
        for (const int gradient : all_of(bucket_of))
            require_refused(witness,
                            "Gradient " + std::to_string(gradient) + " comes a second time",
                            [&] { counter->fire(gradient); });
    }
}

// ---- Task unused

void check_unused() {
    for (const std::vector<int>& bucket_of : plans)
        for (unsigned int seed = 0; seed < 5; seed++) {
            Witness witness(bucket_of, "Some gradients do not come");
            const auto counter = make_ready_counter(bucket_of);
            for (const unsigned int step : {0u, 1u, 2u, 3u}) {
                std::vector<int> used = in_random_order(all_of(bucket_of), seed * 4 + step);
                std::vector<int> unused;
                for (unsigned int i = 0; i < step && !used.empty(); i++) {
                    unused.push_back(used.back());
                    used.pop_back();
                }
                std::ranges::sort(unused);
                witness.see_step(begin_step(witness, *counter), {});
                for (const int gradient : used)
                    witness.see_fire(fire(witness, *counter, gradient), gradient, true);
                witness.see_end(end_backward(witness, *counter), unused);
            }
        }
}

// ---- Task static_graph

// How often each hook fires: 0, 1, 2 or 3 times.
struct Graph {
    std::vector<int> fires;

    explicit Graph(std::size_t gradients) {
        for (std::size_t g = 0; g < gradients; g++)
            fires.push_back(static_cast<int>((g * 5 + 1) % 4));
    }
    std::vector<int> all_fires() const {
        std::vector<int> all;
        for (std::size_t g = 0; g < fires.size(); g++)
            all.insert(all.end(), static_cast<std::size_t>(fires[g]), static_cast<int>(g));
        return all;
    }
    std::vector<int> unused() const {
        std::vector<int> all;
        for (std::size_t g = 0; g < fires.size(); g++)
            if (fires[g] == 0)
                all.push_back(static_cast<int>(g));
        return all;
    }
};

void see_first_step(Witness& witness, ReadyCounter& counter, const Graph& graph) {
    witness.see_step(begin_step(witness, counter), {});
    for (const int gradient : graph.all_fires())
        witness.see_fire(fire(witness, counter, gradient), gradient, false);
    witness.see_end(end_backward(witness, counter), graph.unused());
}

void see_later_step(Witness& witness, ReadyCounter& counter, const Graph& graph,
                    unsigned int seed) {
    witness.see_step(begin_step(witness, counter), graph.unused());
    std::vector<int> left = graph.fires;
    for (const int gradient : in_random_order(graph.all_fires(), seed)) {
        const int still = --left[static_cast<std::size_t>(gradient)];
        witness.see_fire(fire(witness, counter, gradient), gradient, still == 0);
    }
    witness.see_end(end_backward(witness, counter), {});
}

void check_static_graph() {
    for (const std::vector<int>& bucket_of : plans) {
        const Graph graph(bucket_of.size());
        Witness witness(bucket_of, "A static graph, in which the gradients come so often: " +
                                       list_of(graph.fires));
        const auto counter = make_static_graph_counter(bucket_of);
        see_first_step(witness, *counter, graph);
        for (unsigned int seed = 0; seed < 10; seed++)
            see_later_step(witness, *counter, graph, seed);
        for (const int gradient : all_of(bucket_of)) {
            counter->begin_step();
            for (int i = 0; i < graph.fires[static_cast<std::size_t>(gradient)]; i++)
                counter->fire(gradient);
            require_refused(witness,
                            "A later step begins, and gradient " + std::to_string(gradient) +
                                " comes once more than in the first step",
                            [&] { counter->fire(gradient); });
        }
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"in_order", check_in_order},
            {"unused", check_unused},
            {"static_graph", check_static_graph}};
}

}  // namespace ddp::test
