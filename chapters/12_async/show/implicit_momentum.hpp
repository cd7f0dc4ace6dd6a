#pragma once
// Asynchrony acts like momentum: W workers on a parabola, predicted and simulated.
//
// The loss is curvature * w^2 / 2. In every update one worker, each as likely as another, brings
// its gradient at what it has read last, and reads anew. The mean over all orders moves by
//
//     v(t+1) = (1 - 1/W) v(t) - (learning_rate / W) * gradient(w(t)),    w(t+1) = w(t) + v(t+1),
//
// as with a momentum of 1 - 1/W that nobody has asked for. (v(1) is a whole step: all workers begin
// with the same w.) It is exact, as the gradient of a parabola is linear.
#include <cstdint>
#include <vector>

namespace ddp {

struct Parabola {
    double begin = 1, curvature = 1, learning_rate = 0.2;
};

// w(0), ... w(updates), by the formula.
std::vector<double> predicted_path(const Parabola& parabola, int workers, int updates);

// The mean of `runs` random orders; and that of all orders there are, workers^updates in number.
struct Simulated {
    std::vector<double> path;
    double mean_staleness = 0;  // in the last update of each run
};
Simulated simulated_path(const Parabola& parabola, int workers, int updates, int runs,
                         std::uint64_t seed);
std::vector<double> path_of_all_orders(const Parabola& parabola, int workers, int updates);

// The momentum and the learning rate that explain a path best: least squares.
struct Explained {
    double momentum = 0, learning_rate = 0;
};
Explained explain(const Parabola& parabola, const std::vector<double>& path);

// For 1, 2, 4 and 8 workers. Prints. Throws std::runtime_error where simulation and formula differ
// by more than chance.
void show_implicit_momentum(int runs, std::uint64_t seed);

}  // namespace ddp
