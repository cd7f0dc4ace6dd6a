#pragma once
// Supervised trainings from beginning to end.
#include <functional>

#include "17_checkpoint_failover/job/launch_job.hpp"
#include "17_checkpoint_failover/resumable_training.hpp"
#include "17_checkpoint_failover/show/failover_report.hpp"

namespace ddp {

struct JobSettings {
    Launcher launcher = Launcher::processes;
    int ranks = 4;                       // where there are no hosts
    std::vector<HostSlots> hosts;        // that may or may not be there
    std::vector<std::string> arguments;  // of the job, but for its folder
    SupervisorOptions supervisor;
};

// The training of `plan`, as options of this program.
std::vector<std::string> job_arguments(const TrainingPlan& plan, const CommonOptions& common,
                                       double timeout_s);

// A training with these faults, whose checkpoints are in `folder`. `ranks_of` says how many ranks
// life number i has. Throws as Supervisor::run, and std::runtime_error if the job has failed of
// something else.
Scenario show_worked_example(const std::string& name, const JobSettings& settings,
                             const std::string& folder, const std::vector<Fault>& faults,
                             const std::function<int(int attempt)>& ranks_of);

// The chapter's three: nothing goes wrong; ranks are killed and stopped, and come back; a rank is
// killed and does not come back at once.
std::vector<Scenario> tell_three_stories(const JobSettings& settings, bool quick);

// A training in earnest: prints what happens.
Scenario supervise(const JobSettings& settings, const std::string& folder);

}  // namespace ddp
