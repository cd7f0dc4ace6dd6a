#include "05_ranks/world.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <thread>

#include "05_ranks/cores.hpp"
#include "common/gpu/clock.hpp"
#include "common/gpu/gpu.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"

namespace ddp {
namespace {

constexpr int default_ranks = 4;

// Starting a process takes longer than a step of a run.
constexpr double shortest_meeting_s = 10;

// Ranks whose hosts have the same name share memory. Where names do not tell which do (containers
// often have the same one everywhere, or each its own), DDP_HOST does.
std::string host_name() {
    if (const char* given = std::getenv("DDP_HOST"))
        return given;
    char name[HOST_NAME_MAX + 1] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

// What `work` threw, or "". Only what begins here is a cause: a rank that was released by another's
// failure has none of its own.
std::string cause_of(const std::function<void(Rank&)>& work, Rank& rank) {
    const std::string name = rank.job().name(rank.rank());
    try {
        work(rank);
        return "";
    } catch (const RunFailed&) {
        return "";
    } catch (const std::exception& error) {
        return name + ": " + error.what();
    } catch (...) {
        return name + ": something was thrown that is no std::exception";
    }
}

// Several processes with the same command line have the same thing to say of it.
bool is_first_of_its_job() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "RANK", "SLURM_PROCID"})
        if (const char* rank = std::getenv(name))
            return std::string(rank) == "0";
    return true;
}

}  // namespace

World::World(const CommonOptions& options) {
    let_kernels_run_side_by_side();
    job_.timeout_s = options.timeout_s;
    job_.link = options.link;
    switch (find_starter(options)) {
        case StartedBy::nobody:
            start_threads(options.ranks.value_or(default_ranks));
            break;
        case StartedBy::variables:
            job_.started_by = options.processes ? "our launcher" : "the variables RANK, WORLD_SIZE";
            meet_by_variables(read_launch_variables());
            break;
        case StartedBy::mpi:
            job_.started_by = std::getenv("OMPI_COMM_WORLD_SIZE") ? "mpirun" : "srun";
            meet_by_mpi();
            break;
    }
}

World::~World() {
    endpoint_.reset();
    if (mpi_ && !lost_)
        mpi_->finish();
}

void World::start_threads(int ranks) {
    job_.started_by = "threads of one process";
    for (int rank = 0; rank < ranks; rank++)
        job_.members.push_back({host_name(), getpid(), rank, ranks});
    ranks_here_ = ranks;
    endpoint_ = std::make_unique<CoordinatorServer>(job_, Connections(job_.members.size()));
}

void World::start_process(int rank, int world_size) {
    job_.has_processes = true;
    job_.members.resize(static_cast<std::size_t>(world_size));
    job_.members[static_cast<std::size_t>(rank)] = {host_name(), getpid(), 0, 1};
    first_rank_ = rank;
}

void World::meet_by_variables(const LaunchVariables& variables) {
    start_process(variables.rank, variables.world_size);
    if (variables.rank != 0)
        return meet(nullptr, variables.place);
    const Descriptor listener = variables.listener >= 0 ? Descriptor(variables.listener)
                                                        : listen_at("", variables.place.port);
    meet(&listener, variables.place);
}

// Rank 0 takes any free port, and MPI carries the news.
void World::meet_by_mpi() {
    mpi_ = std::make_unique<MpiStart>();
    start_process(mpi_->rank(), mpi_->world_size());
    Descriptor listener;
    std::string news;
    if (mpi_->rank() == 0) {
        listener = listen_at("", 0);
        news = new_job_name() + " " + std::to_string(port_of(listener));
        for (const std::string& address : own_addresses())
            news += " " + address;
    }
    std::istringstream words(mpi_->broadcast(news));
    RendezvousEndpoint place;
    words >> place.job >> place.port;
    for (std::string address; words >> address;)
        place.addresses.push_back(address);
    meet(mpi_->rank() == 0 ? &listener : nullptr, place);
}

// Rank 0 has a listener.
void World::meet(const Descriptor* listener, const RendezvousEndpoint& place) {
    const double limit_s = job_.timeout_s == 0 ? 0 : std::max(job_.timeout_s, shortest_meeting_s);
    if (listener != nullptr) {
        Connections others = receive_ranks(*listener, place.job, job_.members, limit_s);
        endpoint_ = std::make_unique<CoordinatorServer>(job_, std::move(others));
    } else {
        auto connection = join_ranks(place, first_rank_, job_.members, limit_s);
        endpoint_ = std::make_unique<CoordinatorClient>(job_, first_rank_, std::move(connection));
    }
}

void World::run(const std::function<void(Rank&)>& work) {
    if (lost_)
        throw failure("no further run is possible: " + lost_->cause, lost_->reporter);
    run_id_++;
    std::vector<RunResult> verdicts(static_cast<std::size_t>(ranks_here_));
    std::vector<std::thread> threads;  // of the ranks but the first, which is this thread
    for (int i = 1; i < ranks_here_; i++)
        threads.emplace_back(
            [&, i] { verdicts[static_cast<std::size_t>(i)] = take_part(first_rank_ + i, work); });
    verdicts[0] = take_part(first_rank_, work);
    for (std::thread& thread : threads)
        thread.join();
    const RunResult& result = verdicts[0];
    if (result.is_last)
        lost_ = result;
    if (!result.cause.empty())
        throw failure(result.cause, result.reporter);
}

RunFailed World::failure(const std::string& cause, int reporter) const {
    const Member& teller = job_.members[static_cast<std::size_t>(reporter)];
    const Member& own = job_.members[static_cast<std::size_t>(first_rank_)];
    return {cause, ranks_here_ > 1 || reporter == first_rank_,
            teller.host == own.host ? teller.process : 0};
}

void World::prepare(const std::function<void()>& work) {
    run([&](Rank& rank) {
        if (rank.rank() == first_rank_)
            work();
    });
}

RunResult World::take_part(int rank, const std::function<void(Rank&)>& work) {
    RankEvents& events = endpoint_->events(rank);
    events.begin();
    Rank self(rank, run_id_, job_, *endpoint_, events);
    std::optional<CoreBinding> core;
    if (kernels_run_on_cpu && !mpi_)  // mpirun and srun have ways of their own to place ranks
        core.emplace(self.local_rank(), self.local_world_size());
    endpoint_->send(rank, {Message::Kind::end, run_id_, 0, cause_of(work, self), {}});
    const RunResult result = events.wait_for_result(run_id_);
    self.end(result.is_last);
    return result;  // what the rank has kept is dropped after that
}

int run_ranks(int argc, char** argv, Options& options,
              const std::function<int(World& world, const CommonOptions& common)>& work) {
    return run_world_main([&] {
        const CommonOptions common = options.parse(argc, argv);
        if (const std::optional<int> status = launch_processes(common, argv))
            return *status;
        World world(common);
        return work(world, common);
    });
}

int run_world_main(const std::function<int()>& work) {
    return run_main([&] {
        try {
            return work();
        } catch (const RunFailed& failure) {
            if (failure.is_to_be_told_here())
                throw;
            // As soon as one process has failed, mpirun ends the others: let the one that tells the
            // reader be the first.
            failure.wait_until_told();
            return 1;
        } catch (const OptionError&) {
            if (is_first_of_its_job())
                throw;
            return 2;
        } catch (const HelpRequested&) {
            if (is_first_of_its_job())
                throw;
            return 0;
        }
    });
}

}  // namespace ddp
