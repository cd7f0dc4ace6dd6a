// The exercise staleness_gate: random orders in which workers come and go, one after the other, so
// that who may pass is known; then threads that have to be woken; then times, on a clock of our
// own.
#include "exercises/12_async/staleness_gate.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <future>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds at_once{0};
constexpr milliseconds long_wait{2000};  // nobody who is woken needs that

std::string gate_of(int workers, int bound) {
    return std::to_string(workers) + " workers, bound " + std::to_string(bound) + ": ";
}
std::string worker_text(int worker) {
    return "worker " + std::to_string(worker);
}

// ---- Who may pass?

// A gate, and what should become of it.
class Book {
  public:
    Book(int workers, int bound)
        : workers_(workers),
          bound_(bound),
          gate_(make_staleness_gate(workers, bound)),
          done_(static_cast<std::size_t>(workers)),
          is_there_(done_.size(), true) {}

    void step(int worker) {
        const int ahead = done_[at(worker)] - slowest();
        const bool may_begin = ahead <= bound_;
        if (gate_->begin_step(worker, at_once) != may_begin)
            throw Wrong(
                gate_of(workers_, bound_) + worker_text(worker) + " has done " +
                std::to_string(done_[at(worker)]) + " steps, " + std::to_string(ahead) +
                " more than the slowest" + whom_we_count() + "; it " +
                (may_begin ? "need not wait here, and you let it wait."
                           : "must wait here, and you let it pass.") +
                (ahead == bound_ || ahead == bound_ + 1 ? " Is the bound off by one?" : ""));
        if (!may_begin)
            return;
        gate_->end_step(worker);
        done_[at(worker)]++;
    }
    void leave(int worker) {
        gate_->leave(worker);
        is_there_[at(worker)] = false;
        left_ += (left_.empty() ? "" : ", ") + std::to_string(worker);
    }
    bool is_there(int worker) const { return is_there_[at(worker)]; }

  private:
    static std::size_t at(int worker) { return static_cast<std::size_t>(worker); }
    int slowest() const {
        int least = std::numeric_limits<int>::max();
        for (std::size_t i = 0; i < done_.size(); i++)
            if (is_there_[i])
                least = std::min(least, done_[i]);
        return least;
    }
    std::string whom_we_count() const {
        return left_.empty() ? "" : " of those who are still there (gone: " + left_ + ")";
    }

    const int workers_, bound_;
    std::unique_ptr<WaitingGate> gate_;
    std::vector<int> done_;
    std::vector<bool> is_there_;
    std::string left_;
};

void check_who_may_pass() {
    Book one(1, 0);
    for (int i = 0; i < 3; i++)
        one.step(0);
    for (const int workers : {2, 3, 5})
        for (const int bound : {0, 1, 2, 7}) {
            Book book(workers, bound);
            for (int i = 0; i < bound + 3; i++)
                book.step(1);  // alone, until it must wait
            std::mt19937 random(static_cast<unsigned int>(workers * 10 + bound));
            for (int i = 0; i < 300; i++)
                book.step(static_cast<int>(random() % static_cast<unsigned int>(workers)));
        }
}

// ---- Who is woken?

// All workers but 0 are one step ahead, with a bound of 0. They wait until `free_them` is called.
void check_all_are_woken(const std::function<void(WaitingGate&)>& free_them,
                         const std::string& what) {
    constexpr int workers = 4;
    const auto gate = make_staleness_gate(workers, 0);
    std::atomic<int> coming = 0;
    std::vector<std::future<bool>> waiting;
    for (int worker = 1; worker < workers; worker++) {
        gate->begin_step(worker, at_once);
        gate->end_step(worker);
    }
    for (int worker = 1; worker < workers; worker++)
        waiting.push_back(std::async(std::launch::async, [&, worker] {
            coming++;
            const auto begin = std::chrono::steady_clock::now();
            return gate->begin_step(worker, long_wait) &&
                   std::chrono::steady_clock::now() - begin < long_wait;
        }));
    // One that has not come to wait yet when they are freed need not be woken: that is right, too,
    // and proves less.
    while (coming < workers - 1)
        std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(3));
    free_them(*gate);
    std::string late;
    for (int worker = 1; worker < workers; worker++)
        if (!waiting[static_cast<std::size_t>(worker - 1)].get())
            late += (late.empty() ? "" : ", ") + worker_text(worker);
    if (!late.empty())
        throw Wrong("Workers 1, 2 and 3 wait for worker 0, which " + what +
                    "; these were not woken by it: " + late +
                    ". Whoever changes what others wait for must wake all of them.");
}

void check_bound() {
    check_who_may_pass();
    for (int round = 0; round < 5; round++)
        check_all_are_woken(
            [](WaitingGate& gate) {
                gate.begin_step(0, at_once);
                gate.end_step(0);
            },
            "then does its step");
}

void check_leaving() {
    for (const int bound : {0, 2})
        for (unsigned int seed = 0; seed < 5; seed++) {
            constexpr int workers = 4;
            Book book(workers, bound);
            std::mt19937 random(seed);
            for (int i = 0; i < 200; i++) {
                if (i == 50 || i == 100)
                    book.leave(i == 50 ? 0 : 2);
                const int worker = static_cast<int>(random() % workers);
                if (book.is_there(worker))
                    book.step(worker);
            }
            book.leave(3);
            for (int i = 0; i < 10; i++)
                book.step(1);  // nobody else is there
        }
    for (int round = 0; round < 5; round++)
        check_all_are_woken([](WaitingGate& gate) { gate.leave(0); }, "leaves");
}

// ---- When are they done?

// On a clock of our own, through the reader's gate: workers 0 and 1, whose step number i takes
// seconds_of(worker, i). When worker 1 has done `steps` steps.
double measured(int steps, int bound,
                const std::function<double(int worker, int step)>& seconds_of) {
    const auto gate = make_staleness_gate(2, bound);
    constexpr double never = std::numeric_limits<double>::infinity();
    std::vector<double> ends(2, never);  // of the step that each is in
    std::vector<int> done(2);
    double now = 0;
    while (done[1] < steps) {
        for (int worker : {0, 1}) {
            const auto w = static_cast<std::size_t>(worker);
            if (ends[w] == never && gate->begin_step(worker, at_once))
                ends[w] = now + seconds_of(worker, done[w]);
        }
        const auto first = static_cast<std::size_t>(std::ranges::min_element(ends) - ends.begin());
        if (ends[first] == never)
            throw Wrong(gate_of(2, bound) + "both wait, and none of them can ever go on.");
        now = ends[first];
        ends[first] = never;
        done[first]++;
        gate->end_step(static_cast<int>(first));
    }
    return now;
}

void compare_seconds(double predicted, double right, const std::string& what,
                     const std::string& hint) {
    if (std::abs(predicted - right) <= 1e-9 * right)
        return;
    char text[200];
    std::snprintf(text, sizeof text, ": you predict %.3f s; through your gate it takes %.3f s.\n",
                  predicted, right);
    throw Wrong(what + text + hint);
}

void check_pause(int steps, int bound, double step_s, double pause_s, const std::string& hint) {
    char what[200];
    std::snprintf(what, sizeof what, "%d steps of %g s, bound %d, worker 0 pauses for %g s", steps,
                  step_s, bound, pause_s);
    const auto seconds_of = [&](int worker, int step) {
        return worker == 0 && step == 0 ? step_s + pause_s : step_s;
    };
    compare_seconds(seconds_with_pause(steps, bound, step_s, pause_s),
                    measured(steps, bound, seconds_of), what, hint);
}

void check_slow(int steps, int bound, double step_s, double times, const std::string& hint) {
    char what[200];
    std::snprintf(what, sizeof what, "%d steps of %g s, bound %d, worker 0 takes %g times as long",
                  steps, step_s, bound, times);
    const auto seconds_of = [&](int worker, int) { return worker == 0 ? times * step_s : step_s; };
    compare_seconds(seconds_with_slow(steps, bound, step_s, times),
                    measured(steps, bound, seconds_of), what, hint);
}

void check_seconds() {
    check_pause(20, 0, 0.25, 3, "With a bound of 0 all wait for the whole pause.");
    check_pause(
        20, 4, 0.25, 3,
        "While worker 0 pauses the others go on, as far as the bound lets them: how much of "
        "the pause does that hide?");
    check_pause(20, 4, 0.25, 0.75, "So short a pause is hidden by the bound.");
    check_slow(20, 0, 0.25, 4, "With a bound of 0 all take each step together.");
    check_slow(20, 2, 0.25, 4,
               "The bound is a head start that is used up once. Which of worker 0's steps must be "
               "done before the last step can begin?");
    check_slow(20, 2, 0.5, 1, "All are equally fast here.");
    check_slow(6, 5, 0.25, 4, "With so few steps nobody ever has to wait.");
    check_slow(10, 5, 0.25, 1.5, "With so few steps nobody ever has to wait.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"bound", check_bound}, {"leaving", check_leaving}, {"seconds", check_seconds}};
}

}  // namespace ddp::test
