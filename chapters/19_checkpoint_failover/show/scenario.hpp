#pragma once
// Supervised trainings, from the first attempt to the end.
#include <functional>

#include "19_checkpoint_failover/job/launch_job.hpp"
#include "19_checkpoint_failover/resumable_training.hpp"
#include "19_checkpoint_failover/show/failover_report.hpp"

namespace ddp {

struct JobSettings {
    Launcher launcher = Launcher::processes;
    int ranks = 4;                       // where there are no nodes
    std::vector<NodeSlots> nodes;        // that may or may not answer
    std::vector<std::string> arguments;  // of the job, without its folder
    SupervisorOptions supervisor;
};

// Returns the options of this program that make it train by `plan`.
std::vector<std::string> job_arguments(const TrainingPlan& plan, const CommonOptions& common,
                                       double timeout_s);

// Runs a training with these faults, with its checkpoints in `folder`. `ranks_of(i)` is the number
// of ranks of attempt i. Throws what Supervisor::run throws, and std::runtime_error if the job
// fails for another reason than the faults.
Scenario run_scenario(const std::string& name, const JobSettings& settings,
                      const std::string& folder, const std::vector<Fault>& faults,
                      const std::function<int(int attempt)>& ranks_of);

// Runs the chapter's four scenarios: no fault; ranks are killed and stopped, and come back; half of
// the ranks are killed at once, as with their node, and do not come back at once; a rank is killed
// in a training without checkpoints. With `quick` the first two, with one kill.
std::vector<Scenario> run_scenarios(const JobSettings& settings, bool quick);

// Supervises a training without faults of ours, and prints its attempts.
Scenario supervise(const JobSettings& settings, const std::string& folder);

}  // namespace ddp
