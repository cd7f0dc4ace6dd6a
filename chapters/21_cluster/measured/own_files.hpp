#pragma once
// A reader's own files: measured links in place of alpha and beta, and a recorded step of
// 15_overlap.
#include <filesystem>

#include "21_cluster/simulated_all_reduce.hpp"
#include "21_cluster/simulated_training.hpp"

namespace ddp {

struct MeasuredLinks {
    simulator::Link inside, between;
};

// Reads a CSV file with the time of one message between two ranks that do nothing else, one way:
//
//     link,bytes,seconds
//     inside,4096,0.0000031
//     inside,1048576,0.00021
//     between,4096,0.000061
//     between,1048576,0.0091
//
// The bytes of each link grow from line to line, and each has two lines or more. If only one of the
// links is there, it is taken for both. Throws std::runtime_error, with the line, if it is not so.
MeasuredLinks read_links(const std::filesystem::path& path);

// Reads a link, BANDWIDTH,LATENCY. Throws OptionError, with the option, for any other text.
simulator::Link parse_link(const std::string& option, const std::string& text);

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
