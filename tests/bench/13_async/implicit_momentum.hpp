#pragma once
// Asynchrony acts like momentum: W workers on a parabola, predicted and simulated.
//
// The loss is curvature * w^2 / 2. In every update one worker, each with the same probability,
// applies its gradient at the w that it read last, and reads w again. The mean over all orders
// moves by
//
//     v(t+1) = (1 - 1/W) v(t) - (learning_rate / W) * gradient(w(t)),    w(t+1) = w(t) + v(t+1),
//
// which is SGD with a momentum of 1 - 1/W. (v(1) is a whole step, as all workers begin with the
// same w.) The formula is exact, since the gradient of a parabola is linear in w. Source:
// Mitliagkas, Zhang, Hadjis, Re, "Asynchrony begets momentum", 2016.
#include <cstdint>
#include <vector>

namespace ddp {

struct Parabola {
    double begin = 1, curvature = 1, learning_rate = 0.2;
};

// Returns w(0), ..., w(updates) by the formula.
std::vector<double> predicted_path(const Parabola& parabola, int workers, int updates);

// The mean over random orders.
struct Simulated {
    std::vector<double> path;
    double mean_staleness = 0;  // in the last update of each run
};
// Returns the mean of `runs` random orders.
Simulated simulated_path(const Parabola& parabola, int workers, int updates, int runs,
                         std::uint64_t seed);
// Returns the mean of all workers^updates orders.
std::vector<double> path_of_all_orders(const Parabola& parabola, int workers, int updates);

struct Explained {
    double momentum = 0, learning_rate = 0;
};
// Returns the momentum and the learning rate that fit a path best, by least squares.
Explained explain(const Parabola& parabola, const std::vector<double>& path);

// Prints simulation and formula for 1, 2, 4 and 8 workers. Throws std::runtime_error if they differ
// by more than chance explains.
void show_implicit_momentum(int runs, std::uint64_t seed);

}  // namespace ddp
