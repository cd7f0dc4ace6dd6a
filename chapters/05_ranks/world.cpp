// From the command line to running ranks:
//
//     run_ranks
//       1. launch_processes   --processes N: N copies of this program (launcher.cpp). Each copy
//             │               comes here again, as a rank, and goes on with 2
//       2. World::World       find_starter (environment.cpp): threads, variables or MPI?
//             │               find_others (rendezvous.cpp): now every process knows all ranks
//       3. World::run         run_rank, for each rank of this process: work(rank), and then wait
//                             until every rank has ended the run
#include "05_ranks/world.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <future>
#include <optional>
#include <sstream>
#include <thread>

#include "05_ranks/agent_store.hpp"
#include "05_ranks/coordinator/endpoints.hpp"
#include "05_ranks/cores.hpp"
#include "05_ranks/support/mpi_start.hpp"
#include "common/gpu/clock.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/thread_name.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"

namespace ddp {

// ---- A whole program

int run_ranks(int argc, char** argv, Options& parser,
              const std::function<int(World& world, const CommonOptions& common)>& work) {
    return run_world_main([&] {
        const CommonOptions common = parser.parse(argc, argv);
        if (find_starter(common) == StartedBy::none)
            require_writable(common);
        // Step 1. In the launcher the program ends here, with the status of its ranks.
        if (const std::optional<int> status = launch_processes(common, argv))
            return *status;
        // Steps 2 and 3, in every process of the job.
        World world(common);
        return work(world, common);
    });
}

// ---- Step 2: find the other ranks

World::World(const CommonOptions& options) {
    job_.timeout_s = options.timeout_s;
    job_.link = options.link;
    job_.may_take_turns = options.slowly;
    switch (find_starter(options)) {
        case StartedBy::none:
            job_.started_by = "threads of one process";
            become_threads(options.ranks.value_or(options.default_ranks));
            break;
        case StartedBy::variables: {
            const LaunchVariables variables = read_launch_variables();
            job_.started_by = options.processes              ? "our launcher"
                              : !variables.store_key.empty() ? "torchrun"
                                                             : "the variables RANK, WORLD_SIZE";
            find_others_by_variables(variables);
            break;
        }
        case StartedBy::mpi:
            job_.started_by = std::getenv("OMPI_COMM_WORLD_SIZE") ? "mpirun" : "srun";
            mpi_ = std::make_unique<MpiStart>(job_.patience_s());
            become_process(mpi_->rank(), mpi_->world_size());
            find_others_by_broadcast([this](const auto& text) { return mpi_->broadcast(text); });
            break;
    }
}

World::~World() {
    // The connections close last: whatever else is to be sent must have been sent.
    coordinator_.reset();
    if (!mpi_ || lost_)  // MPI would wait for the lost rank
        return;
    mpi_->finish();
    // mpirun waits for all processes, and does not see that one is stopped: rank 0 ends last. (If
    // the run has failed the others wait for rank 0, which has yet to report it.)
    if (!has_rank_0() || std::uncaught_exceptions() > 0)
        return;
    for (int r = 1; r < job_.world_size(); r++) {
        const Member& member = job_.members[static_cast<std::size_t>(r)];
        if (member.node == job_.members[0].node)
            wait_until_ended(r, member.process, job_.timeout_s);
    }
}

// All ranks are in this process: there are none to find.
void World::become_threads(int ranks) {
    for (int rank = 0; rank < ranks; rank++)
        job_.members.push_back({node_name(), getpid(), rank, ranks, ""});
    ranks_here_ = ranks;
    coordinator_ = std::make_unique<CoordinatorServer>(job_, Connections(job_.members.size()));
}

// This process is rank `rank`. Of the other members it knows nothing yet.
void World::become_process(int rank, int world_size) {
    job_.has_processes = true;
    let_kernels_run_side_by_side(8);  // as many streams as one rank has
    job_.members.resize(static_cast<std::size_t>(world_size));
    job_.members[static_cast<std::size_t>(rank)] = {node_name(), getpid(), 0, 1, ""};
    first_rank_ = rank;  // and the only one
}

// Rank 0 listens where the variables say: our launcher has opened the socket already, a start by
// hand has not.
void World::find_others_by_variables(const LaunchVariables& variables) {
    become_process(variables.rank, variables.world_size);
    if (!variables.store_key.empty())
        return find_others_by_store(variables);
    Descriptor listener(variables.listener);
    if (listener.number() >= 0)
        fcntl(listener.number(), F_SETFD, FD_CLOEXEC);  // no program inherits it from this rank
    else if (has_rank_0())
        listener = listen_at(variables.loopback, variables.endpoint.port);
    find_others(std::move(listener), variables.endpoint);
}

namespace {

// Returns where rank 0 is, "job port address address ...": the others take the first of its
// addresses that works. `address` comes before the node's own.
std::string invitation(const Descriptor& listener, const std::string& address) {
    std::string text = new_job_name() + " " + std::to_string(port_of(listener)) + " " + address;
    for (const std::string& own : own_addresses())
        text += " " + own;
    return text;
}

RendezvousEndpoint read_invitation(const std::string& text) {
    std::istringstream words(text);
    RendezvousEndpoint endpoint;
    words >> endpoint.job >> endpoint.port;
    for (std::string address; words >> address;)
        endpoint.addresses.push_back(address);
    return endpoint;
}

}  // namespace

// torchrun's agent has taken MASTER_PORT for its store. Rank 0 listens at any free port, and says
// in the store where that is.
void World::find_others_by_store(const LaunchVariables& variables) {
    AgentStore store(variables.endpoint.addresses.front(), variables.endpoint.port,
                     job_.patience_s());
    Descriptor listener;
    if (variables.rank == 0) {
        listener = listen_at(variables.loopback, 0);
        store.set(variables.store_key, invitation(listener, variables.loopback));
    }
    find_others(std::move(listener), read_invitation(store.get(variables.store_key)));
}

// Rank 0 listens at any free port, and MPI or the other program broadcasts where that is.
// MASTER_ADDR, if it is set, comes before its other addresses.
void World::find_others_by_broadcast(
    const std::function<std::string(const std::string&)>& broadcast) {
    Descriptor listener;
    std::string text;
    if (has_rank_0()) {
        const char* chosen = job_.is_guest ? nullptr : std::getenv("MASTER_ADDR");
        listener = listen_at(job_.is_guest ? "127.0.0.1" : "", 0);  // a guest's job has one node
        text = invitation(listener, chosen == nullptr ? "" : chosen);
    }
    text = broadcast(text);
    find_others(std::move(listener), read_invitation(text));
}

// The rendezvous. Rank 0 has a listener, and gets the coordinator; the others are connected to it.
void World::find_others(Descriptor listener, const RendezvousEndpoint& endpoint) {
    if (has_rank_0()) {
        Reception reception(std::move(listener), endpoint.job);
        Connections others = reception.receive_ranks(job_.members, job_.patience_s());
        coordinator_ =
            std::make_unique<CoordinatorServer>(job_, std::move(others), std::move(reception));
    } else {
        auto connection = join_ranks(endpoint, first_rank_, job_.members, job_.patience_s());
        coordinator_ =
            std::make_unique<CoordinatorClient>(job_, first_rank_, std::move(connection));
    }
}

// ---- Step 3: run the ranks of this process

namespace {

// Calls work(i) for i from 1 to count - 1, each in a thread of its own. None of them begins before
// all have their threads: if the system refuses one, no rank waits for it.
std::vector<std::jthread> start_threads(int count, const std::function<void(int)>& work) {
    std::promise<bool> all_are_there;
    const std::shared_future<bool> begins = all_are_there.get_future().share();
    std::vector<std::jthread> threads;
    try {
        for (int i = 1; i < count; i++)
            threads.emplace_back([=] {
                if (begins.get())
                    work(i);
            });
        all_are_there.set_value(true);
    } catch (const std::system_error&) {
        all_are_there.set_value(false);
        throw;
    }
    return threads;
}

// Calls work(rank). Returns the text of its exception, or "". Only a failure that begins here is a
// cause: RunFailed means that it began on another rank.
std::string cause_of(const std::function<void(Rank&)>& work, Rank& rank) {
    const std::string name = rank.job().name(rank.rank());
    try {
        work(rank);
        return "";
    } catch (const RunFailed&) {
        return "";
    } catch (const std::exception& error) {
        return name + ": " + sentence_of(error);
    } catch (...) {
        return name + ": something was thrown that is not a std::exception";
    }
}

}  // namespace

void World::run(const std::function<void(Rank&)>& work) {
    if (lost_)
        throw failure("no further run is possible: " + lost_->cause, lost_->reporter);
    run_id_++;
    // The first rank runs in this thread, each other one in a thread of its own.
    std::vector<RunResult> results(static_cast<std::size_t>(ranks_here_));
    std::vector<std::jthread> threads = start_threads(ranks_here_, [&](int i) {
        results[static_cast<std::size_t>(i)] = run_rank(first_rank_ + i, work);
    });
    results[0] = run_rank(first_rank_, work);
    threads.clear();  // waits for them
    // All results are the same.
    const RunResult& result = results[0];
    if (result.is_last)
        lost_ = result;
    if (!result.cause.empty())
        throw failure(result.cause, result.reporter);
}

void World::prepare(const std::function<void()>& work) {
    // In a run, so that a failure in one process ends the wait of all others.
    run([&](Rank& rank) {
        if (rank.rank() == first_rank_)
            work();
    });
}

// One rank's run, in the order in which everything ends: its own work, then that of all ranks, then
// what this rank has kept for the others (in ~Rank).
RunResult World::run_rank(int rank, const std::function<void(Rank&)>& work) {
    // A debugger names its thread, and those that it starts: "rank 2", "rank 2 stream".
    const ThreadName name("rank " + std::to_string(rank));
    // The rank itself, and its channel to the others.
    RankEvents& events = coordinator_->events(rank);
    events.begin(run_id_);
    Rank self(rank, run_id_, job_, *coordinator_, events);
    // Its core (cores.cpp), also for the threads that it starts.
    std::optional<CoreBinding> core;
    if (kernels_run_on_cpu && !mpi_ && !job_.is_guest)  // these bind ranks to cores themselves
        core.emplace(self.local_rank(), self.local_world_size());
    // The rank runs. Then it ends the run, with the cause if it has failed, ...
    const std::string cause = cause_of(work, self);
    const Wait wait = events.last_wait();
    const auto peer = static_cast<std::uint64_t>(wait.peer);
    coordinator_->send(rank, {Message::Kind::end, run_id_, peer, cause, {wait.sentence}});
    // ... and waits until all other ranks have ended it.
    const RunResult result = events.wait_for_result(run_id_);
    self.end(result.is_last);
    return result;
}

// Returns the exception that this process throws; the process of rank `reporter` prints it.
RunFailed World::failure(const std::string& cause, int reporter) const {
    // A process that does not print waits for the one that does: it needs its number, which means
    // nothing on another node.
    const Member& member = job_.members[static_cast<std::size_t>(reporter)];
    const Member& own = job_.members[static_cast<std::size_t>(first_rank_)];
    const bool rank_0_is_lost = reporter != 0;  // it would have told all others who reports
    return {cause, ranks_here_ > 1 || reporter == first_rank_,
            member.node == own.node ? member.process : 0, rank_0_is_lost};
}

// ---- Failures

namespace {

// Gives rank 0 the time to say what is wrong: mpirun ends every process once one has failed, and
// the sentence would be lost. It ends this one, too, when rank 0 is over.
void let_rank_0_speak() {
    if (std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("PMIX_RANK"))
        std::this_thread::sleep_for(std::chrono::seconds(2));
}

}  // namespace

int run_world_main(const std::function<int()>& work) {
    bool stays_visible = false;
    const int status = run_main([&] {
        try {
            return work();
        } catch (const RunFailed& failure) {
            if (failure.is_reported_here()) {
                stays_visible = failure.stays_visible();
                throw;
            }
            // When one process has failed, mpirun ends the others at once: the one that reports the
            // cause must be the first to end.
            failure.wait_until_reported();
            return 1;
        } catch (const OptionError&) {
            if (prints_refusals())
                throw;
            let_rank_0_speak();
            return 2;
        } catch (const HelpRequested&) {
            if (prints_refusals())
                throw;
            return 0;
        }
    });
    // Then the cause is printed: mpirun ends this process a quarter of a second after the lost one.
    if (stays_visible)
        std::this_thread::sleep_for(std::chrono::milliseconds(250));
    return status;
}

}  // namespace ddp
