// Staleness and its implicit momentum, in numbers.
#include <cmath>

#include "13_async/show/staleness.hpp"
#include "tests/bench/13_async/implicit_momentum.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("implicit momentum: the mean of all orders is the formula's, exactly") {
    const Parabola parabola{1.5, 0.8, 0.3};
    for (int workers : {1, 2, 3, 4}) {
        const int updates = workers == 4 ? 7 : 9;
        const std::vector<double> all = path_of_all_orders(parabola, workers, updates);
        const std::vector<double> predicted = predicted_path(parabola, workers, updates);
        REQUIRE(all.size() == predicted.size());
        for (std::size_t t = 0; t < all.size(); t++) {
            CAPTURE(workers, t);
            REQUIRE(all[t] == Approx(predicted[t]).epsilon(1e-12));
        }
        // A momentum that is a little different is not the mean of all orders.
        const std::vector<double> other = predicted_path(parabola, workers + 1, updates);
        REQUIRE(std::abs(all.back() - other.back()) > 1e-3);
    }
}

TEST_CASE("implicit momentum: the path shows it, 1 - 1/W") {
    const Parabola parabola;
    for (int workers : {1, 2, 3, 4, 8}) {
        const Explained found = explain(parabola, predicted_path(parabola, workers, 60));
        CAPTURE(workers);
        REQUIRE(found.momentum == Approx(1 - 1.0 / workers).margin(1e-9));
        REQUIRE(found.learning_rate == Approx(0.2 / workers).epsilon(1e-9));
        const Simulated simulated = simulated_path(parabola, workers, 60, 4000, 7);
        REQUIRE(explain(parabola, simulated.path).momentum ==
                Approx(1 - 1.0 / workers).margin(0.02));
        REQUIRE(simulated.mean_staleness == Approx(workers - 1).epsilon(0.1).margin(1e-9));
    }
}

TEST_CASE("staleness: the numbers of a worked example") {
    const OneParameter model;
    constexpr Action::What reads = Action::reads, applied = Action::is_applied;
    const std::vector<OneUpdate> updates = play(model, 3,
                                                {{1, applied},
                                                 {1, reads},
                                                 {2, applied},
                                                 {1, applied},
                                                 {3, applied},
                                                 {2, reads},
                                                 {2, applied}});
    REQUIRE(updates.size() == 5);
    const float after[] = {2, 4, 5.5, 7.5, 7.625};
    const int staleness[] = {0, 1, 1, 3, 0};
    const std::vector<int> contains[] = {{0, 0, 0}, {0, 0, 0}, {1, 0, 0}, {0, 0, 0}, {2, 1, 1}};
    for (std::size_t i = 0; i < 5; i++) {
        CAPTURE(i);
        REQUIRE(updates[i].after == after[i]);
        REQUIRE(updates[i].staleness() == staleness[i]);
        REQUIRE(updates[i].contains == contains[i]);
    }
    REQUIRE(updates[2].computed_at == 2);
    REQUIRE(updates[2].before == 4);
}

TEST_CASE("staleness: old gradients converge below a learning rate, and only below it") {
    for (const int workers : {1, 2, 3, 5, 9}) {
        CAPTURE(workers);
        const double limit = largest_learning_rate(workers - 1);
        OneParameter model;
        model.learning_rate = static_cast<float>(0.95 * limit);
        REQUIRE(distance_after(model, workers, 4000) < 0.01);
        model.learning_rate = static_cast<float>(1.05 * limit);
        REQUIRE_FALSE(distance_after(model, workers, 4000) < 8);  // or it is no number any more
    }
    REQUIRE(largest_learning_rate(0) == Approx(2));
    REQUIRE(largest_learning_rate(1) == Approx(1));
}

}  // namespace ddp::test
