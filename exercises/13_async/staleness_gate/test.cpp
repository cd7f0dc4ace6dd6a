// The exercise staleness_gate: workers that come in random order, one call after the other, so that
// who may pass is known; then threads that have to be woken.
#include "exercises/13_async/staleness_gate.hpp"

#include <algorithm>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds at_once{0}, patience{80}, long_wait{2000};

void take_step(WaitingGate& gate, int worker) {
    gate.begin_step(worker, at_once);
    gate.end_step(worker);
}

// After every 100 tries the next worker of `leaving` leaves, and tries no more.
void check_who_may_pass(int workers, int bound, const std::vector<int>& leaving) {
    const auto gate = make_staleness_gate(workers, bound);
    std::vector<int> done(static_cast<std::size_t>(workers)), still_there(done.size());
    for (int i = 0; i < workers; i++)
        still_there[static_cast<std::size_t>(i)] = i;
    const auto steps_of = [&](int worker) -> int& {
        return done[static_cast<std::size_t>(worker)];
    };
    std::mt19937 random(static_cast<unsigned int>(workers * 10 + bound));
    std::string gone;
    for (std::size_t tries = 1; !still_there.empty() && tries <= 500; tries++) {
        const int worker = still_there[random() % still_there.size()];
        const int ahead = steps_of(worker) - steps_of(std::ranges::min(still_there, {}, steps_of));
        if (gate->begin_step(worker, at_once) != (ahead <= bound))
            throw Wrong(std::to_string(workers) + " workers, bound " + std::to_string(bound) +
                        ": worker " + std::to_string(worker) + " is " + std::to_string(ahead) +
                        " steps ahead of the slowest one that is still there" + gone + ". " +
                        (ahead <= bound ? "You let it wait, and it may pass."
                                        : "You let it pass, and it has to wait.") +
                        " Do you compare it with the slowest one, and is the bound off by one?");
        if (ahead <= bound) {
            gate->end_step(worker);
            steps_of(worker)++;
        }
        if (tries % 100 == 0 && tries / 100 <= leaving.size()) {
            gate->leave(leaving[tries / 100 - 1]);
            std::erase(still_there, leaving[tries / 100 - 1]);
            gone += " (worker " + std::to_string(leaving[tries / 100 - 1]) + " has left)";
        }
    }
}

void check_patience() {
    const auto gate = make_staleness_gate(2, 0);
    take_step(*gate, 1);
    const std::string what = "Worker 1 waits for worker 0, with a patience of 80 ms: begin_step ";
    trying(what + "does not return after them. Every wait has an end: wait_for, not wait.");
    const auto begin = Clock::now();
    if (gate->begin_step(1, patience))
        throw Wrong(what + "returns true, though only its patience is over.");
    if (Clock::now() - begin < patience)
        throw Wrong(what + "gives up sooner. It has to wait for a change that long.");
    gate->begin_step(0, at_once);
    if (gate->begin_step(1, at_once))
        throw Wrong(
            "Bound 0: worker 1 has done one step, and worker 0 has only begun its first. You let "
            "worker 1 pass; a step counts when end_step is called.");
}

// Workers 1 and 3 are one step ahead, with a bound of 0: they wait until worker 2 lets them go on,
// and worker 0, too. (A thread that comes later than that is right as well, and proves less.)
void check_waking(const std::function<void(WaitingGate&, int worker)>& let_go_on,
                  const std::string& what) {
    const auto gate = make_staleness_gate(4, 0);
    std::vector<std::future<bool>> waiting;
    bool is_early = false, is_late = false;
    for (const int worker : {1, 3}) {
        take_step(*gate, worker);
        waiting.push_back(std::async(std::launch::async, [&, worker] {
            const auto begin = Clock::now();
            return gate->begin_step(worker, long_wait) && Clock::now() - begin < long_wait;
        }));
    }
    std::this_thread::sleep_for(milliseconds(10));
    let_go_on(*gate, 2);
    for (const auto& wait : waiting)
        is_early |= wait.wait_for(milliseconds(10)) == std::future_status::ready;
    let_go_on(*gate, 0);
    for (auto& wait : waiting)
        is_late |= !wait.get();
    if (is_early)
        throw Wrong("Two workers wait for workers 0 and 2. Worker 2 " + what +
                    ", and a begin_step returns, though worker 0 is still behind. A worker that "
                    "is woken must look again whether it can go on.");
    if (is_late)
        throw Wrong("Two workers wait for worker 0, which " + what +
                    ", and not both go on. Does that wake all who wait, and can its call lock the "
                    "mutex while they do?" +
                    may_be_busy);
}

void check_bound() {
    check_patience();
    for (const int workers : {1, 2, 3, 5})
        for (const int bound : {0, 1, 2, 7})
            check_who_may_pass(workers, bound, {});
    for (int round = 0; round < 5; round++)
        check_waking(take_step, "does a step");
}

void check_leaving() {
    for (const int bound : {0, 2})
        check_who_may_pass(4, bound, {0, 2, 3, 1});
    const auto leave = [](WaitingGate& gate, int worker) {
        if (worker == 0)  // it is lost in the middle of a step
            gate.begin_step(worker, at_once);
        gate.leave(worker);
    };
    for (int round = 0; round < 5; round++)
        check_waking(leave, "leaves");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"bound", check_bound}, {"leaving", check_leaving}};
}

}  // namespace ddp::test
