#pragma once
// The results of supervised trainings: as tables, and as a file for the plot.
#include "19_checkpoint_failover/job/scenario.hpp"
#include "common/report/csv.hpp"

namespace ddp {

// Returns "done in 2 attempts: test accuracy 0.846, hash 42eb2818f59439f9", or that the training
// was told to end.
std::string text_of_end(const Scenario& scenario);

// Prints one line for each recovery.
void show_recoveries(const std::vector<Scenario>& scenarios);

// Prints how the trainings ended. Throws std::runtime_error if the second one, whose ranks came
// back after each fault, has other parameters than the first one, which was not disturbed.
void show_endings(const std::vector<Scenario>& scenarios);

// Writes one line for each interval of each rank's lane, for each fault, and for each loss; and
// beside it, as NAME_saving.csv, what saving costs: the shares of the time that are lost by saves
// and by steps that are done again, and both together in a simulation of 20,000 failures.
void write_scenarios(const std::string& path, const std::vector<Scenario>& scenarios);

}  // namespace ddp
