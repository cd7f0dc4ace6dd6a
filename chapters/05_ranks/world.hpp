#pragma once
// All ranks of a job. The same program runs them as threads or as processes:
//
//     int main(int argc, char** argv) {
//         Options options("example", "What the program is about.");
//         return ddp::run_ranks(argc, argv, options, [](World& world, const CommonOptions&) {
//             world.run([](Rank& rank) { ... });
//             return 0;
//         });
//     }
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "05_ranks/coordinator/endpoints.hpp"
#include "05_ranks/environment.hpp"
#include "05_ranks/rank.hpp"
#include "05_ranks/support/mpi_start.hpp"

namespace ddp {

class World {
  public:
    // Finds the other ranks: those that options.ranks asks for as threads of this process (4 unless
    // it says so), or the other processes of a job that our launcher, torchrun, mpirun or srun has
    // started. Should stand at the beginning of a program. Throws OptionError for a request that
    // makes no sense here, std::runtime_error if the others cannot be found.
    explicit World(const CommonOptions& options);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    // Calls `work` with each rank of this process, and returns when it has returned on all ranks of
    // the job. If it throws anywhere, or a rank is lost, the others are released from whatever they
    // wait for, and all processes throw RunFailed with the first cause; then the next run starts
    // anew, unless a rank was lost.
    void run(const std::function<void(Rank&)>& work);

    // Calls `work` once in each process of the job, before its ranks do anything: to load data,
    // say. Fails as run does.
    void prepare(const std::function<void()>& work);

    int world_size() const { return job_.world_size(); }
    const Job& job() const { return job_; }
    // Whether rank 0 is one of this process's: it prints and writes files.
    bool has_rank_0() const { return first_rank_ == 0; }

  private:
    void start_threads(int ranks);
    void start_process(int rank, int world_size);
    void meet_by_variables(const LaunchVariables& variables);
    void meet_by_mpi();
    void meet(const Descriptor* listener, const RendezvousEndpoint& place);
    RunResult take_part(int rank, const std::function<void(Rank&)>& work);
    // As all ranks hear it; `reporter` is the one that tells the reader.
    RunFailed failure(const std::string& cause, int reporter) const;

    Job job_;
    int first_rank_ = 0;  // of this process: all in a job of threads, this one otherwise
    int ranks_here_ = 1;
    std::uint64_t run_id_ = 0;
    std::optional<RunResult> lost_;  // the failure that no further run can follow
    std::unique_ptr<MpiStart> mpi_;
    std::unique_ptr<CoordinatorEndpoint> endpoint_;
};

// The whole of a program with ranks. Parses `options`, starts the processes that --processes asks
// for, finds the other ranks, and returns what `work` returns, as the exit status; otherwise as
// run_world_main. Each process of the job calls `work` once.
int run_ranks(int argc, char** argv, Options& options,
              const std::function<int(World& world, const CommonOptions& common)>& work);

// run_main (common/report/main.hpp) for programs with ranks: what a job failed of is printed once,
// by the lowest rank that is left.
int run_world_main(const std::function<int()>& work);

}  // namespace ddp
