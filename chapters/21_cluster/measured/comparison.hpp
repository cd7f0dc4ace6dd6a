#pragma once
// Measurements, each beside what the simulator makes of it. They are of two kinds:
//
//     on_nodes.cpp     this book's, on four nodes made of network namespaces
//     published.cpp    those that others have published, on clusters whose links are known roughly
#include <string>
#include <vector>

#include "21_cluster/simulated_training.hpp"

namespace ddp {

struct Comparison {
    std::string kind, what;
    double measured, predicted;
    std::string unit;    // "ms", "GB/s", or "" for an efficiency
    std::string source;  // where the measurement is from

    // Returns predicted / measured - 1; for an efficiency that of the loss, 1 - efficiency: an
    // efficiency of 0.95 is easy to predict, and a loss of 0.05 is not.
    double error() const;
};

inline constexpr const char* large_all_reduce = "all-reduces from 256 KiB";
inline constexpr const char* own_all_reduce = "this book's ring";
inline constexpr const char* plain_step = "steps";
inline constexpr const char* jittery_step = "steps with 20 % jitter";
inline constexpr const char* published_all_reduce = "published all-reduces";
inline constexpr const char* published_training = "published trainings";
inline constexpr const char* published_failures = "published failures";

// Return the comparisons, predicted anew: nothing of a prediction is stored.
std::vector<Comparison> comparisons_on_nodes();
std::vector<Comparison> comparisons_with_published();
std::vector<Comparison> all_comparisons();  // of both kinds

// Returns the mean size of the errors of one kind.
double mean_error(const std::string& kind, const std::vector<Comparison>& comparisons);
// Returns a sentence with them: how many were measured, the mean size, the worst.
std::string errors_of(const std::string& kind, const std::vector<Comparison>& comparisons);

// Returns a step whose backward fills buckets of one size, `bytes` in all.
simulator::Step equal_buckets(double forward_s, double backward_s, int buckets, double bytes);

}  // namespace ddp
