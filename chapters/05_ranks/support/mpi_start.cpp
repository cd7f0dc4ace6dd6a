#include "05_ranks/support/mpi_start.hpp"

#include <stdexcept>
#if defined(DDP_MPI)
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iostream>
#include <sstream>
#include <thread>

#include "05_ranks/environment.hpp"
#include "common/report/bench.hpp"
#include "common/report/units.hpp"
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

[[noreturn]] void end_with(const std::string& sentence) {
    std::cerr << "error: " + sentence + "\n" << std::flush;
    std::_Exit(1);
}

// Ends this process, with one sentence, if a call of MPI takes longer than `limit_s` (0: no limit),
// since nothing can interrupt it. Rank 0 speaks first: mpirun then ends the others.
class CallLimit {
  public:
    CallLimit(const char* call, double limit_s)
        : thread_([call, limit_s, end = end_.get_future()] {
              const std::chrono::duration<double> limit(limit_s + (prints_refusals() ? 0 : 3));
              if (limit_s > 0 && end.wait_for(limit) == std::future_status::timeout)
                  end_with("waited " + format_fixed(limit.count(), 1) + " s in " + call +
                           " for the other ranks: is one of them stopped, or does MPI use a "
                           "network that does not join the nodes? See chapters/symptoms.md");
          }) {}
    ~CallLimit() { end_.set_value(); }
    CallLimit(const CallLimit&) = delete;
    CallLimit& operator=(const CallLimit&) = delete;

  private:
    std::promise<void> end_;
    std::jthread thread_;
};

// Returns the state of a process: T if it is stopped, Z if it has ended, or is none that mpirun or
// srun has started as it has started this one.
char state_of(pid_t process) {
    // "4711 (name of the program) T 4700 ...": its state, and its parent
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(file, text);
    char state = 0;
    pid_t parent = 0;
    std::istringstream(text.substr(text.rfind(')') + 1)) >> state >> parent;
    return parent == getppid() ? state : 'Z';
}

}  // namespace

MpiStart::MpiStart(double limit_s) : limit_s_(limit_s) {
    int is_started = 0, threads = 0;
    MPI_Initialized(&is_started);
    started_here_ = is_started == 0;
    const CallLimit limit("MPI_Init", limit_s_);
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
    const CallLimit limit("MPI_Bcast", limit_s_);
    const Communicator ranks;
    auto size = static_cast<unsigned long long>(text.size());
    MPI_Bcast(&size, 1, MPI_UNSIGNED_LONG_LONG, 0, ranks);
    std::string result = text;
    result.resize(size);
    MPI_Bcast(result.data(), static_cast<int>(size), MPI_CHAR, 0, ranks);
    return result;
}

void MpiStart::finish() noexcept {
    const CallLimit limit("MPI_Finalize", limit_s_);
    if (started_here_)
        MPI_Finalize();
}

void wait_until_ended(int rank, pid_t process, double limit_s) {
    char state = 0;
    for (const Stopwatch waited; (state = state_of(process)) != 'Z' && waited.seconds() < limit_s;)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (state == 'T' && limit_s > 0)
        end_with("rank " + std::to_string(rank) + " (process " + std::to_string(process) +
                 ") is stopped, and the job cannot end without it");
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

void MpiStart::finish() noexcept {}

void wait_until_ended(int, pid_t, double) {}

#endif

}  // namespace ddp
