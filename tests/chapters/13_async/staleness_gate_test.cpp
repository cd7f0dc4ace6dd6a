// Which workers may begin another step, for every order in which they can come back.
#include <algorithm>
#include <functional>
#include <string>

#include "13_async/staleness_gate.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Lets workers come back in an order: choice(n) picks one of the n workers that are in a step.
// Returns "" if the gate keeps its promise, otherwise what it does instead.
std::string fault_of(StalenessGate& gate, int workers, std::optional<int> bound, int steps,
                     const std::function<std::size_t(std::size_t)>& choice) {
    std::vector<int> done(static_cast<std::size_t>(workers) + 1), away, held;
    int begun = 0, dismissed = 0;
    for (int worker = 1; worker <= workers; worker++)
        held.push_back(worker);
    for (;;) {
        const int slowest = *std::min_element(done.begin() + 1, done.end());
        for (const StalenessGate::Pass& pass : gate.let_through()) {
            if (std::erase(held, pass.worker) != 1)
                return "lets through a worker that is not there";
            const int ahead = done[static_cast<std::size_t>(pass.worker)] - slowest;
            if (pass.goes_on && bound && ahead > *bound)
                return "lets through a worker that is too far ahead";
            if (pass.goes_on != (begun < steps))
                return "miscounts the steps";
            begun += pass.goes_on;
            dismissed += !pass.goes_on;
            if (pass.goes_on)
                away.push_back(pass.worker);
        }
        for (int worker : held)
            if (!bound || done[static_cast<std::size_t>(worker)] - slowest <= *bound)
                return "holds back a worker that may go on";
        if (away.empty())
            break;
        const auto next = away.begin() + static_cast<std::ptrdiff_t>(choice(away.size()));
        const int worker = *next;
        away.erase(next);
        done[static_cast<std::size_t>(worker)]++;
        held.push_back(worker);
        gate.arrive(worker);
    }
    if (begun != steps || dismissed != workers || !held.empty())
        return "does not dismiss every worker";
    return bound && gate.max_ahead() > *bound ? "reports that it let a worker too far ahead" : "";
}

// Tries all orders: the choices are the digits of a number that is counted up. The gate is built
// with the bound `built`.
std::string fault_in_any_order(int workers, std::optional<int> bound, int steps, int* orders,
                               std::optional<int> built) {
    std::vector<std::size_t> digits, limits;
    for (;;) {
        StalenessGate gate(workers, built, steps);
        std::size_t at = 0;
        const std::string fault = fault_of(gate, workers, bound, steps, [&](std::size_t choices) {
            if (at == digits.size()) {
                digits.push_back(0);
                limits.push_back(0);
            }
            limits[at] = choices;
            return digits[at++];
        });
        ++*orders;
        if (!fault.empty())
            return fault;
        while (!digits.empty() && ++digits.back() == limits[digits.size() - 1]) {
            digits.pop_back();
            limits.pop_back();
        }
        if (digits.empty())
            return "";
    }
}

}  // namespace

TEST_CASE("staleness gate: in every order no worker is too far ahead, and none waits needlessly") {
    for (int workers : {1, 2, 3})
        for (std::optional<int> bound :
             {std::optional<int>(), std::optional(0), std::optional(1), std::optional(2)})
            for (int steps : {0, 1, workers, 7}) {
                int orders = 0;
                CAPTURE(workers, bound.value_or(-1), steps);
                REQUIRE(fault_in_any_order(workers, bound, steps, &orders, bound) == "");
                REQUIRE((orders > 1) == (workers > 1 && steps > 1));
            }
}

TEST_CASE("staleness gate: a gate with a different bound is recognized") {
    int orders = 0;
    for (int bound : {0, 1, 2}) {
        CAPTURE(bound);
        for (std::optional<int> larger : {std::optional<int>(), std::optional(bound + 1)})
            REQUIRE(fault_in_any_order(3, bound, 7, &orders, larger) ==
                    "lets through a worker that is too far ahead");
        if (bound > 0)
            REQUIRE(fault_in_any_order(3, bound, 7, &orders, bound - 1) ==
                    "holds back a worker that may go on");
    }
}

TEST_CASE("staleness gate: impossible requests are refused") {
    REQUIRE_THROWS_WITH(StalenessGate(0, {}, 1),
                        "a staleness gate needs a worker, and no negative bound or steps");
    REQUIRE_THROWS_AS(StalenessGate(1, -1, 1), std::invalid_argument);
    REQUIRE_THROWS_AS(StalenessGate(1, 0, -1), std::invalid_argument);
    StalenessGate gate(2, {}, 5);
    REQUIRE_THROWS_WITH(gate.arrive(1), "worker 1 is at the gate already");
}

}  // namespace ddp::test
