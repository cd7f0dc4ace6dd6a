#include "tests/bench/13_async/implicit_momentum.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <stdexcept>
#include <string>

#include "common/data/random.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// One order of updates: the parameter, and what each worker has read of it.
struct Workers {
    Workers(const Parabola& parabola, int workers)
        : parabola(parabola),
          w(parabola.begin),
          has(static_cast<std::size_t>(workers), w),
          read(has.size(), 0) {}

    // Applies the worker's gradient, then lets it read. Returns the gradient's staleness.
    int update(std::size_t worker) {
        const int staleness = updates - read[worker];
        w -= parabola.learning_rate * parabola.curvature * has[worker];
        has[worker] = w;
        read[worker] = ++updates;
        return staleness;
    }

    const Parabola& parabola;
    double w;
    std::vector<double> has;
    std::vector<int> read;
    int updates = 0;
};

}  // namespace

std::vector<double> predicted_path(const Parabola& parabola, int workers, int updates) {
    const double momentum = 1 - 1.0 / workers;
    std::vector<double> path{parabola.begin};
    double velocity = 0;
    for (int t = 0; t < updates; t++) {
        const double step = parabola.learning_rate * parabola.curvature * path.back();
        velocity = t == 0 ? -step : momentum * velocity - step / workers;
        path.push_back(path.back() + velocity);
    }
    return path;
}

Simulated simulated_path(const Parabola& parabola, int workers, int updates, int runs,
                         std::uint64_t seed) {
    Random random(seed);
    Simulated mean{std::vector<double>(static_cast<std::size_t>(updates) + 1)};
    for (int run = 0; run < runs; run++) {
        Workers order(parabola, workers);
        mean.path[0] += order.w / runs;
        for (std::size_t t = 1; t < mean.path.size(); t++) {
            const int staleness = order.update(random.below(order.has.size()));
            mean.path[t] += order.w / runs;
            if (t + 1 == mean.path.size())
                mean.mean_staleness += static_cast<double>(staleness) / runs;
        }
    }
    return mean;
}

std::vector<double> path_of_all_orders(const Parabola& parabola, int workers, int updates) {
    std::vector<double> path(static_cast<std::size_t>(updates) + 1);
    std::vector<std::size_t> order(static_cast<std::size_t>(updates));
    const double probability = std::pow(workers, -updates);
    for (bool is_over = false; !is_over;) {
        Workers all(parabola, workers);
        path[0] += probability * all.w;
        for (std::size_t t = 0; t < order.size(); t++) {
            all.update(order[t]);
            path[t + 1] += probability * all.w;
        }
        // The next order: count up a number with a digit for each update.
        std::size_t digit = 0;
        while (digit < order.size() && ++order[digit] == all.has.size())
            order[digit++] = 0;
        is_over = digit == order.size();
    }
    return path;
}

Explained explain(const Parabola& parabola, const std::vector<double>& path) {
    // v(t+1) = momentum * v(t) + rate * (-gradient(w(t))), for all t at once.
    double vv = 0, vg = 0, gg = 0, vn = 0, gn = 0;
    for (std::size_t t = 1; t + 1 < path.size(); t++) {
        const double velocity = path[t] - path[t - 1], next = path[t + 1] - path[t];
        const double downhill = -parabola.curvature * path[t];
        vv += velocity * velocity;
        vg += velocity * downhill;
        gg += downhill * downhill;
        vn += velocity * next;
        gn += downhill * next;
    }
    const double determinant = vv * gg - vg * vg;
    if (determinant < 1e-9 * vv * gg)  // one worker: v(t) follows from w(t), and no momentum fits
        return {0, gn / gg};
    return {(vn * gg - gn * vg) / determinant, (gn * vv - vn * vg) / determinant};
}

void show_implicit_momentum(int runs, std::uint64_t seed) {
    constexpr int updates = 60;
    const Parabola parabola;
    Table table("Asynchrony acts like momentum: the mean of " + format_count(runs) +
                    " random orders on a parabola",
                {"workers", "staleness", "W - 1", "momentum", "1 - 1/W", "learning rate",
                 "set rate / W", "largest difference"});
    for (int workers : {1, 2, 4, 8}) {
        const Simulated simulated = simulated_path(parabola, workers, updates, runs, seed);
        const std::vector<double> predicted = predicted_path(parabola, workers, updates);
        const Explained found = explain(parabola, simulated.path);
        const double momentum = 1 - 1.0 / workers;
        double difference = 0;
        for (std::size_t t = 0; t < predicted.size(); t++)
            difference = std::max(difference, std::abs(predicted[t] - simulated.path[t]));
        table.row({std::to_string(workers), format_fixed(simulated.mean_staleness, 2),
                   std::to_string(workers - 1), format_fixed(found.momentum, 3),
                   format_fixed(momentum, 3), format_fixed(found.learning_rate, 3),
                   format_fixed(parabola.learning_rate / workers, 3), format_fixed(difference, 4)});
        // Six standard deviations of the mean: w stays within 2 of the formula.
        if (difference > 12 / std::sqrt(runs))
            throw std::runtime_error("with " + std::to_string(workers) +
                                     " workers simulation and formula differ by " +
                                     format_fixed(difference, 4));
    }
    table.note(
        "Each measured column stands left of its prediction. The largest difference is between the "
        "two paths of w, from w = 1, over " +
        std::to_string(updates) + " updates.");
    std::cout << table << "\n";
}

}  // namespace ddp
