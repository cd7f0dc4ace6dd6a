#pragma once
// Supervised trainings of the chapter's program, small and soon done.
#include <random>
#include <string>
#include <vector>

#include "19_checkpoint_failover/job/faults.hpp"
#include "19_checkpoint_failover/supervisor.hpp"
#include "tests/chapters/support/pictures.hpp"

namespace ddp::test {

struct Training {
    // How the ranks are started: {"--processes", "4"}, say; or by mpirun.
    std::vector<std::string> ranks{"--processes", "4"};
    bool by_mpirun = false;
    double timeout_s = 20;
    int epochs = 2;

    std::vector<std::string> command(const std::string& folder, const std::string& data) const;
};

// The result of a supervised job.
struct Outcome {
    std::vector<Attempt> attempts;
    std::string hash;
    int torn = 0;  // checkpoints that were found damaged, after any of the attempts
};

// Runs the job under a supervisor whose `watch` interferes.
Outcome supervise(const Training& training, const Pictures& pictures,
                  const SupervisorOptions& options, const Supervisor::Watch& watch = {});

// Kills one process at some moment of each attempt, `kills` times in all: a rank, the launcher, or
// a rank as it writes a checkpoint.
class RandomKills {
  public:
    RandomKills(std::uint32_t seed, int kills, double longest_s)
        : random_(seed), left_(kills), longest_s_(longest_s) {}
    void watch(SupervisedProcess& job, const Attempt& attempt, double now_s);
    int done() const { return done_; }

  private:
    void plan(const Attempt& attempt);

    std::mt19937 random_;
    int left_, done_ = 0;
    double longest_s_;
    double planned_for_s_ = -1;  // the beginning of the attempt
    double due_s_ = 0;
    int victim_ = 0;  // a rank; below 0: the launcher
    bool while_saving_ = false;
    bool is_over_ = false;
};

}  // namespace ddp::test
