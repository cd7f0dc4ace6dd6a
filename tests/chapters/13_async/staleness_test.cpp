// Staleness, in numbers.
#include "13_async/show/staleness.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

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
