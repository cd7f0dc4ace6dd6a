#pragma once
// Supervised trainings with faults, from the first attempt to the end.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "19_checkpoint_failover/job/faults.hpp"
#include "19_checkpoint_failover/job/launch_job.hpp"
#include "19_checkpoint_failover/resumable_training.hpp"
#include "19_checkpoint_failover/supervisor.hpp"

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
