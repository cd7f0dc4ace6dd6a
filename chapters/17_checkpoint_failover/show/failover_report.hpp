#pragma once
// What became of supervised trainings: as a table, and as a file for the plot.
#include <string>
#include <vector>

#include "17_checkpoint_failover/show/faults.hpp"
#include "common/report/csv.hpp"

namespace ddp {

// From a fault until the job is again where it was.
struct Recovery {
    Fault fault;
    double notice_s = 0;  // until anybody knows
    double end_s = 0;     // until all processes are gone
    double start_s = 0;   // until all ranks have met again, with their data
    double load_s = 0;    // until they have the checkpoint
    double redo_s = 0;    // the steps behind the checkpoint, once more
    int from_step = 0;    // the checkpoint's
    int ranks = 0;        // that go on

    double total_s() const { return notice_s + end_s + start_s + load_s + redo_s; }
};

// One supervised training.
struct Scenario {
    std::string name;
    std::vector<Attempt> attempts;
    std::vector<Fault> faults;  // number i ended attempt i

    std::string final_hash() const;
    double final_accuracy() const;
    double waited_s() const;  // of its last life: the training for its checkpoints
    std::vector<Recovery> recoveries() const;
};

void show_recoveries(const std::vector<Scenario>& scenarios);

// How they have ended. Throws std::runtime_error if the second, whose ranks came back each time,
// has other parameters than the first, to which nothing has happened.
void show_endings(const std::vector<Scenario>& scenarios);

// One line for each interval of each rank's lane, for each fault, and for each loss.
void write_scenarios(const std::string& path, const std::vector<Scenario>& scenarios);

}  // namespace ddp
