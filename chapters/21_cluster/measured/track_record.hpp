#pragma once
// Shows how far the simulator was off wherever its predictions could be compared with a
// measurement: on four hosts made of network namespaces, and with numbers that others have
// published.
#include <string>
#include <vector>

#include "common/report/csv.hpp"

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

// Returns all comparisons, predicted anew: nothing of a prediction is stored.
std::vector<Comparison> all_comparisons();

// Returns a sentence with the errors of one kind: how many were measured, the mean size, the worst.
std::string errors_of(const std::string& kind, const std::vector<Comparison>& comparisons);

// Returns the columns of the one file that a run writes: every prediction, and what was measured
// where something was.
std::vector<std::string> prediction_columns();

// Prints the published numbers, each with its prediction and its error, and writes all comparisons
// to `file`.
void show_track_record(const std::vector<Comparison>& comparisons, CsvWriter& file);

}  // namespace ddp
