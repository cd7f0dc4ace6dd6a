#pragma once
// The results of supervised trainings: as tables, and as a file for the plot.
#include <optional>
#include <string>
#include <vector>

#include "19_checkpoint_failover/show/faults.hpp"
#include "common/report/csv.hpp"

namespace ddp {

// The time from a fault until the job is back at the step at which it happened, in seconds.
struct Recovery {
    Fault fault;
    double notice_s = 0;  // until the failure is noticed
    double end_s = 0;     // until all processes have ended
    double start_s = 0;   // until all ranks have started again, with their data
    double load_s = 0;    // until they have loaded the checkpoint
    double redo_s = 0;    // until they have redone the steps since the checkpoint
    int from_step = 0;    // step of the checkpoint
    int ranks = 0;        // of the next attempt

    double total_s() const { return notice_s + end_s + start_s + load_s + redo_s; }
};

// One supervised training, with the faults that happened to it.
struct Scenario {
    std::string name;
    std::vector<Attempt> attempts;
    std::vector<Fault> faults;  // fault i ended attempt i

    std::string final_hash() const;
    std::optional<double> final_accuracy() const;  // of the last test, if a line has told of one
    // Returns the seconds that the last attempt has reported at its end as "waited" or "copied".
    double seconds_of(const std::string& event) const;
    // Returns the recovery from each fault.
    std::vector<Recovery> recoveries() const;
};

// Returns "done in 2 attempts: test accuracy 0.846, hash 42eb2818f59439f9", or that the training
// was told to end.
std::string text_of_end(const Scenario& scenario);

// Prints one line for each recovery.
void show_recoveries(const std::vector<Scenario>& scenarios);

// Prints how the trainings ended. Throws std::runtime_error if the second one, whose ranks came
// back after each fault, has other parameters than the first one, which was not disturbed.
void show_endings(const std::vector<Scenario>& scenarios);

// Writes one line for each interval of each rank's lane, for each fault, and for each loss.
void write_scenarios(const std::string& path, const std::vector<Scenario>& scenarios);

}  // namespace ddp
