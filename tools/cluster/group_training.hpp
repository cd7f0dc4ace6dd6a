#pragma once
// Trainings on some of a job's ranks, whose steps are timed. All ranks of the job make one
// together, and call its functions together: the ranks outside of the group have one of their own,
// and wait.
//
//     SleepingTraining    sleeps for as long as it would compute: many ranks can do that on one
//     core NetworkTraining     computes this book's network, with overlap
#include <memory>
#include <vector>

#include "10_nodes/make_communicator.hpp"
#include "15_overlap/support/timed_training.hpp"
#include "21_cluster/simulated_training.hpp"

namespace ddp {

inline constexpr std::size_t sleeping_bucket_bytes = 512 << 10;

class GroupTraining {
  public:
    GroupTraining(Rank& rank, const Group& group);
    virtual ~GroupTraining() = default;
    GroupTraining(const GroupTraining&) = delete;
    GroupTraining& operator=(const GroupTraining&) = delete;

    // Returns the seconds of a step, from the moment when all begin until the last one ends.
    virtual double seconds_of_step() = 0;

  protected:
    Rank& rank_;
    const bool takes_part_;
    const Group group_;
};

class SleepingTraining final : public GroupTraining {
  public:
    SleepingTraining(Rank& rank, const Group& group, const AllReduceOrder& order,
                     const simulator::Step& step);
    double seconds_of_step() override;

  private:
    void make_step();

    const simulator::Step step_;
    std::unique_ptr<Communicator> communicator_;
    std::vector<ArenaBuffer<float>> buckets_;
    Stream stream_;
};

class NetworkTraining final : public GroupTraining {
  public:
    NetworkTraining(Rank& rank, const Group& group, const AllReduceOrder& order, int batch);
    double seconds_of_step() override;

    // Returns what the last step of rank 0, alone in its group, was made of.
    simulator::Step parts();

  private:
    Random random_{1};
    Device& device_;
    std::unique_ptr<Sequential> model_;
    std::unique_ptr<Communicator> communicator_;
    TimedTraining training_;
};

// Returns the median of so many steps, after one to warm up.
double median_of_steps(GroupTraining& training, int rounds);

}  // namespace ddp
