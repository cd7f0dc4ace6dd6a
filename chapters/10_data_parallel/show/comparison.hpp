#pragma once
// The same training in several ways: alone, together, and by one rank that sees everything.
#include <filesystem>
#include <string>
#include <vector>

#include "10_data_parallel/training_result.hpp"
#include "common/data/images.hpp"

namespace ddp {

struct ComparisonOptions {
    int batch = 32;                       // samples a step and rank
    std::string communicator = "native";  // who carries the gradients
    std::uint64_t seed = 1;
};

// How far apart the replicas are, as Drift measures it, before some of the steps.
struct DriftCurve {
    std::vector<int> steps;
    std::vector<double> distances;
};

struct Comparison {
    TrainingResult alone, together,
        whole;                        // gradients not sent; averaged; one rank, all the samples
    TrainingResult sum, shorter_sum;  // gradients added up; and steps that are N times shorter
    DriftCurve drift_alone, drift_together;
};

// The MLP learns from `order`, of which every rank has its part. All ranks call it together.
Comparison compare_courses(Rank& rank, const LabelledImages& images, const std::vector<int>& order,
                           const ComparisonOptions& options);

// Prints on rank 0, and writes a row for each step to `csv` (empty: none).
void show_comparison(Rank& rank, const Comparison& courses, int batch,
                     const std::filesystem::path& csv);

// What a step of DataParallel is made of, with as many replicas as there are ranks, all driven by
// rank 0; beside it a step of `ranks`, a course of all of them. The others wait.
void show_one_process(Rank& rank, const LabelledImages& images, const TrainingResult& ranks,
                      int batch, int steps, std::uint64_t seed);

}  // namespace ddp
