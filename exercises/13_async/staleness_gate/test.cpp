// The exercise staleness_gate: random orders in which workers come and go, one after the other, so
// that who may pass is known; then threads that have to be woken; then times, on a clock of our
// own.
#include "exercises/13_async/staleness_gate.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "exercises/support/tasks.hpp"

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

// ---- Calls that may not return

// Calls `call`, and throws Wrong if it has not returned after `limit`: a thread of it then stays
// behind until the program ends, so whatever the call uses is owned by it.
template <class Call>
bool returned(const std::string& what, milliseconds limit, const Call& call) {
    std::packaged_task<bool()> task(call);
    std::future<bool> result = task.get_future();
    std::thread thread(std::move(task));
    if (result.wait_for(limit) == std::future_status::ready) {
        thread.join();
        return result.get();
    }
    thread.detach();
    throw Wrong(what + may_be_busy);
}
constexpr milliseconds no_end{5000};

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
                (may_begin
                     ? "need not wait here, and you let it wait. (A patience of 0 asks whether "
                       "it may begin now.)"
                     : "must wait here, and you let it pass.") +
                (ahead == bound_ || ahead == bound_ + 1 ? " Is the bound off by one?" : "") +
                " Do you compare it with the slowest one of those that are there?");
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

using Clock = std::chrono::steady_clock;

// All workers but `slowest` are one step ahead, with a bound of 0. They wait until
// free_them(gate, slowest) is called.
void check_all_are_woken(int slowest,
                         const std::function<void(WaitingGate&, int slowest)>& free_them,
                         const std::string& what) {
    constexpr int workers = 4;
    const auto gate = make_staleness_gate(workers, 0);
    std::atomic<int> coming = 0;
    std::vector<std::future<bool>> waiting(workers);
    const auto for_all_others = [&](const std::function<void(int worker)>& act) {
        for (int worker = 0; worker < workers; worker++)
            if (worker != slowest)
                act(worker);
    };
    for_all_others([&](int worker) {
        gate->begin_step(worker, at_once);
        gate->end_step(worker);
    });
    for_all_others([&](int worker) {
        waiting[static_cast<std::size_t>(worker)] = std::async(std::launch::async, [&, worker] {
            coming++;
            const auto begin = Clock::now();
            return gate->begin_step(worker, long_wait) && Clock::now() - begin < long_wait;
        });
    });
    // One that has not come to wait yet when they are freed need not be woken: that is right, too,
    // and proves less.
    while (coming < workers - 1)
        std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(3));
    free_them(*gate, slowest);
    std::string late;
    for_all_others([&](int worker) {
        if (!waiting[static_cast<std::size_t>(worker)].get())
            late += (late.empty() ? "" : ", ") + worker_text(worker);
    });
    if (!late.empty())
        throw Wrong("Of four workers three wait for " + worker_text(slowest) + ", which " + what +
                    "; these were not woken by it: " + late +
                    ". A worker that changes what others wait for must wake all of them." +
                    may_be_busy);
}

// The same, often enough for all to wait when they are freed, with more than one worker that they
// wait for: none has a part of its own.
void check_who_is_woken(const std::function<void(WaitingGate&, int slowest)>& free_them,
                        const std::string& what) {
    for (int round = 0; round < 5; round++)
        for (const int slowest : {0, 2})
            check_all_are_woken(slowest, free_them, what);
}

// Worker 1 is one step ahead with a bound of 0, so it has to wait for worker 0.
std::shared_ptr<WaitingGate> gate_with_one_ahead(int workers) {
    const std::shared_ptr<WaitingGate> gate = make_staleness_gate(workers, 0);
    gate->begin_step(1, at_once);
    gate->end_step(1);
    return gate;
}

// A wait lasts as long as `patience` says, and no longer.
void check_patience() {
    constexpr milliseconds patience{80};
    const auto gate = gate_with_one_ahead(2);
    const auto begin = std::chrono::steady_clock::now();
    const bool may_begin = returned(
        "Worker 1 has to wait for worker 0, which does nothing: begin_step does not return, though "
        "its patience of 80 ms is over. Every wait has an end: wait_for, not wait.",
        no_end, [gate, patience] { return gate->begin_step(1, patience); });
    const auto waited =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
    if (may_begin)
        throw Wrong(
            "Worker 1 has to wait for worker 0, which does nothing: begin_step returns true, "
            "though "
            "only its patience is over.");
    if (waited < patience)
        throw Wrong(
            "Worker 1 has to wait for worker 0: begin_step has a patience of 80 ms, and "
            "gives up after " +
            std::to_string(waited.count()) + " ms. It has to wait for a change that long.");
}

// A step counts when it is done, not when it is begun.
void check_done_counts() {
    const auto gate = gate_with_one_ahead(2);
    gate->begin_step(0, at_once);
    if (gate->begin_step(1, at_once))
        throw Wrong(
            "Worker 1 has done one step more than worker 0, which has only begun its first, and "
            "the bound is 0: you let worker 1 pass. A step counts when end_step is called.");
}

// Whoever is woken looks again: worker 2's step changes nothing for worker 1.
void check_woken_too_early() {
    const auto gate = gate_with_one_ahead(3);
    std::atomic<bool> is_coming = false;
    auto waiting = std::async(std::launch::async, [&] {
        is_coming = true;
        return gate->begin_step(1, long_wait);
    });
    while (!is_coming)
        std::this_thread::yield();
    std::this_thread::sleep_for(
        milliseconds(20));  // not yet waiting is right, too, and proves less
    returned(
        "Worker 1 waits in begin_step, and worker 2 cannot do a step meanwhile: its calls do not "
        "return. Does the one that waits keep the mutex? wait_for gives it back, a sleep does not.",
        long_wait / 2, [gate] {
            gate->begin_step(2, at_once);
            gate->end_step(2);
            return true;
        });
    const bool has_gone_on = waiting.wait_for(milliseconds(20)) == std::future_status::ready;
    gate->begin_step(0, at_once);
    gate->end_step(0);
    waiting.get();
    if (has_gone_on)
        throw Wrong(
            "Worker 1 waits for worker 0. Worker 2 does a step, which wakes worker 1, and "
            "its begin_step returns, though worker 0 has done nothing and the patience is "
            "not over. A worker that is woken must look again whether it can go on.");
}

void check_bound() {
    check_patience();
    check_who_may_pass();
    check_done_counts();
    check_woken_too_early();
    check_who_is_woken(
        [](WaitingGate& gate, int slowest) {
            gate.begin_step(slowest, at_once);
            gate.end_step(slowest);
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
            book.leave(1);     // and now nobody is
        }
    check_who_is_woken([](WaitingGate& gate, int slowest) { gate.leave(slowest); }, "leaves");
    check_who_is_woken(
        [](WaitingGate& gate, int slowest) {
            gate.begin_step(slowest, at_once);
            gate.leave(slowest);
        },
        "is lost in the middle of a step: it leaves after begin_step");
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

// A wrong formula's seconds, and what the student is told.
using Causes = std::vector<std::pair<double, const char*>>;

void compare_seconds(double predicted, double right, const std::string& what,
                     const std::string& hint, const Causes& causes) {
    if (std::abs(predicted - right) <= 1e-9 * right)
        return;
    char text[200];
    std::snprintf(text, sizeof text, ": you predict %.3f s; through your gate it takes %.3f s.\n",
                  predicted, right);
    for (const auto& [wrong, words] : causes)
        if (std::abs(predicted - wrong) <= 1e-9 * (1 + std::abs(wrong)))
            throw Wrong(what + text + words + "\n" + hint);
    throw Wrong(what + text + hint);
}

void check_pause(int steps, int bound, double step_s, double pause_s, const std::string& hint) {
    char what[200];
    std::snprintf(what, sizeof what, "%d steps of %g s, bound %d, worker 0 pauses for %g s", steps,
                  step_s, bound, pause_s);
    const auto seconds_of = [&](int worker, int step) {
        return worker == 0 && step == 0 ? step_s + pause_s : step_s;
    };
    compare_seconds(
        seconds_with_pause(steps, bound, step_s, pause_s), measured(steps, bound, seconds_of), what,
        hint,
        {{steps * step_s, "In yours the others never wait."},
         {steps * step_s + pause_s, "In yours the bound hides nothing of the pause."},
         {steps * step_s + pause_s - bound * step_s,
          "The others cannot be done sooner than without a pause: the wait is not below 0."},
         {steps * step_s + std::max(0.0, pause_s - (bound - 1) * step_s),
          "You hide one step too few of the pause."},
         {steps * step_s + std::max(0.0, pause_s - (bound + 1) * step_s),
          "You hide one step too many: worker 0 does its first step after the pause, and "
          "only then the others have one more."}});
}

void check_slow(int steps, int bound, double step_s, double times, const std::string& hint) {
    char what[200];
    std::snprintf(what, sizeof what, "%d steps of %g s, bound %d, worker 0 takes %g times as long",
                  steps, step_s, bound, times);
    const auto seconds_of = [&](int worker, int) { return worker == 0 ? times * step_s : step_s; };
    compare_seconds(
        seconds_with_slow(steps, bound, step_s, times), measured(steps, bound, seconds_of), what,
        hint,
        {{steps * step_s, "In yours the others never wait."},
         {steps * times * step_s,
          "In yours the others do each step together with worker 0: they can be `bound` steps "
          "ahead."},
         {(steps - 1 - bound) * times * step_s + step_s,
          "Worker 0 need not have done any step here: the others still have to do all of "
          "theirs."},
         {(steps - bound) * times * step_s,
          "The last step of the others begins when worker 0 has done steps - 1 - bound, "
          "and then takes one of THEIR steps."},
         {(steps - bound) * times * step_s + step_s, "You wait for one step of worker 0 too many."},
         {(steps - 2 - bound) * times * step_s + step_s,
          "You wait for one step of worker 0 too few."}});
}

void check_seconds() {
    check_pause(
        20, 4, 0.25, 3,
        "While worker 0 pauses the others go on, as far as the bound lets them: how much of "
        "the pause does that hide?");
    check_pause(20, 0, 0.25, 3, "The case: a bound of 0, so all wait for the whole pause.");
    check_pause(20, 4, 0.25, 0.75, "The case: so short a pause is hidden by the bound.");
    check_slow(20, 2, 0.25, 4,
               "The bound is a head start that is used up once. Which of worker 0's steps must be "
               "done before the last step can begin?");
    check_slow(20, 0, 0.25, 4, "The case: a bound of 0, so all take each step together.");
    check_slow(20, 2, 0.5, 1, "The case: all are equally fast.");
    check_slow(7, 5, 0.25, 4, "The case: so few steps that the others never wait.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"bound", check_bound}, {"leaving", check_leaving}, {"seconds", check_seconds}};
}

}  // namespace ddp::test
