#include "05_ranks/support/mpi_start.hpp"

#include <stdexcept>
#if defined(DDP_MPI)
#include <mpi.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "05_ranks/support/mpi_limit.hpp"
#endif

#if defined(DDP_MPI) && defined(__SANITIZE_ADDRESS__)
// Turns off AddressSanitizer's search for leaks where MPI was started: MPI has leaks of its own.
extern "C" int __lsan_is_turned_off() {
    int is_started = 0;
    MPI_Initialized(&is_started);
    return is_started;
}
#endif

namespace ddp {

#if defined(DDP_MPI)

namespace {

// A communicator of this class's own: its messages never mix with those of other code that uses
// MPI.
class Communicator {
  public:
    Communicator() { MPI_Comm_dup(MPI_COMM_WORLD, &communicator_); }
    ~Communicator() { MPI_Comm_free(&communicator_); }
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    operator MPI_Comm() const { return communicator_; }

  private:
    MPI_Comm communicator_;
};

// Starts MPI with two signals set aside. SIGTERM is blocked in MPI's own threads: it is for the
// watchdog. SIGPIPE is ignored: Open MPI writes to the sockets of ranks that have died, which must
// not end this process before it has reported which rank it was.
int start_mpi() {
    std::signal(SIGPIPE, SIG_IGN);
    sigset_t sigterm, before;
    sigemptyset(&sigterm);
    sigaddset(&sigterm, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &sigterm, &before);
    int threads = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return threads;
}

// Publishes `mine` as rank `rank`'s line, and returns the lines that the ranks have published a
// second later, by rank. mpirun keeps them; Slurm does not know this service, and there are none.
// The names carry the job's own, since an mpirun that stays, as Open MPI 5's can, keeps them for
// the next job.
std::vector<std::string> exchange_by_launcher(int rank, int world_size, const std::string& mine) {
    if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr)  // not mpirun
        return {};
    const char* job = std::getenv("PMIX_NAMESPACE");
    const auto name_of = [&](int r) {
        return "silent rank " + std::to_string(r) + " of " + (job == nullptr ? "a job" : job);
    };
    for (const MPI_Comm each : {MPI_COMM_WORLD, MPI_COMM_SELF})  // an error is an answer here
        MPI_Comm_set_errhandler(each, MPI_ERRORS_RETURN);
    if (MPI_Publish_name(name_of(rank).c_str(), MPI_INFO_NULL, mine.c_str()) != MPI_SUCCESS)
        return {};
    std::this_thread::sleep_for(std::chrono::seconds(1));
    std::vector<std::string> lines;
    for (int r = 0; r < world_size; r++) {
        char line[MPI_MAX_PORT_NAME] = "";
        if (MPI_Lookup_name(name_of(r).c_str(), MPI_INFO_NULL, line) == MPI_SUCCESS)
            lines.emplace_back(line);
    }
    return lines;
}

}  // namespace

MpiStart::MpiStart(double limit_s) : limit_s_(limit_s) {
    int is_started = 0, threads = 0;
    MPI_Initialized(&is_started);
    started_here_ = is_started == 0;
    const MpiLimit limit("MPI_Init", limit_s_, limit_s_);
    if (started_here_)
        threads = start_mpi();
    else
        MPI_Query_thread(&threads);
    if (threads != MPI_THREAD_MULTIPLE)
        throw std::runtime_error(
            "this MPI cannot be called by several threads at once: use one "
            "that has MPI_THREAD_MULTIPLE");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size_);
}

std::string MpiStart::broadcast(const std::string& text) const {
    const MpiLimit limit("MPI_Bcast", limit_s_, limit_s_,
                         [rank = rank_, ranks = world_size_](const std::string& mine) {
                             return exchange_by_launcher(rank, ranks, mine);
                         });
    const Communicator ranks;
    auto size = static_cast<unsigned long long>(text.size());
    MPI_Bcast(&size, 1, MPI_UNSIGNED_LONG_LONG, 0, ranks);
    std::string result = text;
    result.resize(size);
    MPI_Bcast(result.data(), static_cast<int>(size), MPI_CHAR, 0, ranks);
    return result;
}

void MpiStart::finish(double timeout_s) noexcept {
    // A rank that lives may still write its results before it comes.
    const MpiLimit limit("MPI_Finalize", timeout_s, 10 * limit_s_);
    if (started_here_)
        MPI_Finalize();
}

#else

MpiStart::MpiStart(double limit_s) : limit_s_(limit_s) {
    throw std::runtime_error(
        "this program was built without MPI, but mpirun or srun has started it: install Open MPI "
        "and build again, or use --processes");
}

std::string MpiStart::broadcast(const std::string& text) const {
    return text;
}

void MpiStart::finish(double) noexcept {}

#endif

}  // namespace ddp
