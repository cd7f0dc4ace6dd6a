#pragma once
// All ranks of a job. The same program runs them as threads or as processes:
//
//     int main(int argc, char** argv) {
//         Options parser("example", "What the program is about.");
//         return ddp::run_ranks(argc, argv, parser, [](World& world, const CommonOptions&) {
//             world.run([](Rank& rank) { ... });
//             return 0;
//         });
//     }
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "05_ranks/environment.hpp"
#include "05_ranks/rank.hpp"

namespace ddp {

class CoordinatorEndpoint;
class MpiStart;

class World {
  public:
    // Finds the other ranks: as many threads of this process as options.ranks says (4 if it says
    // nothing), or the other processes of the job that our launcher, torchrun, mpirun or srun has
    // started. A program should construct it early. Throws OptionError if the options make no sense
    // here, std::runtime_error if the other ranks cannot be found.
    explicit World(const CommonOptions& options);
    // Is one rank in the process of another program on this node, whose signals and cores it leaves
    // alone (support/guest.cpp). `all_gather`, which all ranks call once, returns all their texts.
    using AllGather = std::function<std::vector<std::string>(const std::string& text)>;
    World(int rank, int world_size, double timeout_s, const AllGather& all_gather);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    // Calls `work` with each rank of this process, and returns when it has returned on all ranks of
    // the job. If it throws on one rank, or a rank is lost, all waits of the other ranks end, and
    // every process throws RunFailed with the first cause. The next run starts afresh, unless a
    // rank was lost.
    void run(const std::function<void(Rank&)>& work);

    // Calls `work` once in each process of the job, before its ranks begin: to load data, for
    // example. Fails as run does.
    void prepare(const std::function<void()>& work);

    int world_size() const { return job_.world_size(); }
    const Job& job() const { return job_; }
    // Returns whether rank 0, which prints and writes files, is in this process.
    bool has_rank_0() const { return first_rank_ == 0; }

  private:
    void become_threads(int ranks);
    void become_process(int rank, int world_size);
    void find_others_by_variables(const LaunchVariables& variables);
    void find_others_by_store(const LaunchVariables& variables);
    void find_others_by_broadcast(const std::function<std::string(const std::string&)>& broadcast);
    void find_others(Descriptor listener, const RendezvousEndpoint& endpoint);
    RunResult run_rank(int rank, const std::function<void(Rank&)>& work);
    RunFailed failure(const std::string& cause, int reporter) const;

    Job job_;
    int first_rank_ = 0;  // of this process: all in a job of threads, otherwise one
    int ranks_here_ = 1;
    std::uint64_t run_id_ = 0;
    std::optional<RunResult> lost_;  // set when a rank was lost: no run can follow
    std::unique_ptr<MpiStart> mpi_;  // if mpirun or srun has started this process
    std::unique_ptr<CoordinatorEndpoint> coordinator_;
};

// Runs a whole program with ranks: parses `options`, starts the processes that --processes asks
// for, finds the other ranks, calls `work` once in each process, and returns what `work` returns as
// the exit status. Handles exceptions as run_world_main does.
int run_ranks(int argc, char** argv, Options& parser,
              const std::function<int(World& world, const CommonOptions& common)>& work);

// Calls `work` as run_main (common/report/main.hpp) does, but the processes of a job print the
// cause of a failed run once: the process of the lowest rank that is left does.
int run_world_main(const std::function<int()>& work);

}  // namespace ddp
