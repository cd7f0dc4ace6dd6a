#pragma once
// A recorded step of 15_overlap, which the simulator takes for the compute of its ranks.
#include <filesystem>

#include "21_cluster/simulated_training.hpp"

namespace ddp {

struct RecordedStep {
    simulator::Step step;  // means over the ranks
    int ranks = 0;
    double measured_s = 0;             // the whole step, with overlap
    std::vector<double> all_reduce_s;  // of each bucket, since the last rank has begun it
};

// Reads the step with overlap from a timeline that `./book run 15` has written
// (out/overlap_timeline.csv or out/overlap_link_timeline.csv). A bucket counts as ready at the end
// of the last backward span before its all-reduce. If it had to wait for the bucket before, it was
// ready earlier, and nothing tells when: record with a fast link. Throws std::runtime_error, with
// the line where there is one, if the file is not such a timeline.
RecordedStep read_step(const std::filesystem::path& path);

}  // namespace ddp
