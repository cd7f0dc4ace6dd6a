#include "05_ranks/coordinator/endpoints.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <thread>
#include <utility>

#include "common/report/units.hpp"

namespace ddp {
namespace {

using namespace std::chrono_literals;

// The time from SIGTERM until it is obeyed: long enough for the cause to reach every rank, and for
// this process to end by itself. mpirun kills after about a second.
constexpr auto grace_period = 500ms;

constexpr auto heartbeat_period = 50ms;

// A watchdog polls every 50 ms. One that has not polled for this long was stopped with its process.
constexpr auto stopped_after = 1s;

// Processes that are killed at the same moment end one after the other, within this time.
constexpr auto killing_time = 100ms;

// A thread that has not come back from a failed run after this time is probably in an endless loop.
constexpr auto patience_untold = 5s;

// Returns how long a rank may take to come back from a run that has failed. A process is given up
// after the time-out. A thread cannot be; but a kernel that does not end is ended after 30 s or ten
// time-outs (06_messages/peers.cpp), and then its thread comes back.
std::chrono::duration<double> longest_way_back(const Job& job) {
    return std::chrono::duration<double>(job.has_processes ? job.timeout_s
                                                           : std::max(11 * job.timeout_s, 40.0));
}

// Returns whether the process still runs. One that has ended keeps its number until its parent has
// asked for its status; but its pidfd is readable.
bool is_running(pid_t process) {
    const Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
    if (pidfd.number() < 0)
        return errno != ESRCH;
    pollfd end{pidfd.number(), POLLIN, 0};
    return poll(&end, 1, 0) == 0;
}

// Returns the lowest rank other than 0 whose process still runs. (A process on another node cannot
// be seen from here, and counts as running.)
int lowest_rank_left(const Job& job, int own_rank) {
    const std::string& node = job.members[static_cast<std::size_t>(own_rank)].node;
    for (int r = 1; r < own_rank; r++) {
        const Member& member = job.members[static_cast<std::size_t>(r)];
        if (member.node != node || is_running(member.process))
            return r;
    }
    return own_rank;
}

}  // namespace

CoordinatorEndpoint::CoordinatorEndpoint(const Job& job) : job_(job) {
    if (job.has_processes && !job.is_guest)
        sigterm_.emplace();
}

std::vector<int> CoordinatorEndpoint::with_signal(std::vector<int> descriptors) const {
    descriptors.push_back(sigterm_ ? sigterm_->descriptor() : -1);
    return descriptors;
}

bool CoordinatorEndpoint::is_heartbeat_due() {
    const Clock::time_point now = Clock::now();
    const bool is_due = now - heartbeat_at_ > heartbeat_period;
    if (is_due)
        heartbeat_at_ = now;
    return is_due;
}

void CoordinatorEndpoint::poll_clock() {
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double> gap = now - std::exchange(polled_at_, now);
    if (gap < stopped_after)
        return;
    awake_from_ = now;
    has_overslept_ |= job_.timeout_s > 0 && gap.count() > longest_silence_s(job_.timeout_s);
}

void CoordinatorEndpoint::poll_rank(int rank) {
    if (std::optional<Message> error = events(rank).error()) {
        error->text = job_.name(rank) + ": " + error->text;
        send(rank, *error);
    }
    poll_overdue(rank);
}

// The way back of a thread may take minutes, and until then the cause of the failure is not
// printed: says once what the program waits for.
void CoordinatorEndpoint::tell_overdue(int rank, const RunFailed& failure,
                                       std::chrono::duration<double> overdue) {
    if (job_.has_processes || has_told_overdue_ || overdue < patience_untold)
        return;
    has_told_overdue_ = true;
    const std::chrono::duration<double> left = longest_way_back(job_) + grace_period - overdue;
    std::cerr << "still running: " + job_.name(rank) +
                     " has not come back from a run that has failed (" + failure.what() +
                     "), and is waited for, " + format_fixed(left.count(), 0) + " s at most\n"
              << std::flush;
}

// A rank that computes forever, or waits inside another library (MPI's calls have no limit and
// cannot be interrupted), would keep its process forever, and the job with it.
void CoordinatorEndpoint::poll_overdue(int rank) {
    const std::chrono::duration<double> overdue(events(rank).seconds_overdue());
    if (overdue.count() == 0 || job_.timeout_s == 0 || job_.is_guest)
        return;
    const RunFailed failure = events(rank).last_failure(rank);
    const bool reports = !job_.has_processes || failure.is_reported_here();
    tell_overdue(rank, failure, overdue);
    // By then the coordinator has given up the rank. The one that reports must be the first to end.
    if (overdue < longest_way_back(job_) + (reports ? 1 : 2) * grace_period)
        return;
    if (reports)
        std::cerr << "error: " + std::string(failure.what()) +
                         (job_.has_processes
                              ? "\n"
                              : "; since then " + job_.name(rank) + " has not come back\n")
                  << std::flush;
    std::_Exit(1);  // nothing of this process can be ended in a better way
}

void CoordinatorEndpoint::poll_sigterm(int rank) {
    if (!sigterm_ && events(rank).takes_sigterm())
        sigterm_.emplace();  // in a job of threads, whose process SIGTERM ends at once otherwise
    if (!sigterm_)
        return;
    poll_clock();  // again: it may have been stopped since this poll began
    const Clock::time_point now = Clock::now();
    if (sigterm_->has_come() && !sigterm_at_) {
        // A process that was stopped until now has nothing to report: the others have done so.
        if (now - awake_from_ < stopped_after)
            sigterm_->obey();
        if (events(rank).post_sigterm())
            return;  // the rank ends by itself, when it has saved
        if (!job_.has_processes)
            sigterm_->obey();
        sigterm_at_ = now;
        send(rank, {Message::Kind::fail, 0, 0, job_.name(rank) + " was told to end (SIGTERM)", {}});
    }
    if (sigterm_at_ && now - *sigterm_at_ > grace_period) {
        // The rank's own thread, which should report the failure, is busy with something else.
        const RunFailed failure = events(rank).last_failure(rank);
        if (failure.is_reported_here())
            std::cerr << "error: " << failure.what() << std::endl;
        sigterm_->obey();
    }
}

// ---- CoordinatorServer

CoordinatorServer::CoordinatorServer(const Job& job, Connections connections,
                                     std::optional<Reception> reception)
    : CoordinatorEndpoint(job),
      events_(job.members.size()),
      connections_(std::move(connections)),
      reception_(std::move(reception)),
      broken_(job.members.size(), false),
      coordinator_(
          [&] {
              std::vector<std::string> names;
              for (int r = 0; r < job.world_size(); r++)
                  names.push_back(job.name(r));
              return names;
          }(),
          job.timeout_s, job.patience_s(), job.has_processes,
          [this](int rank, const Message& message) {
              const auto r = static_cast<std::size_t>(rank);
              if (connections_[r])
                  send_over(*connections_[r], message);
              else
                  events_[r].post(message);
          }),
      watchdog_([this] { return descriptors(); }, [this] { poll(); }) {}

CoordinatorServer::~CoordinatorServer() {
    const Message goodbye{Message::Kind::goodbye, 0, 0, "", {}};
    coordinator_.receive(0, goodbye);  // waits for a delivery that is under way
    for (const auto& connection : connections_)
        if (connection) {
            send_over(*connection, goodbye);
            connection->finish();
        }
}

void CoordinatorServer::send_over(Connection& connection, const Message& message) const {
    try {
        connection.send(message);
    } catch (const std::exception&) {
        // The connection is broken: the watchdog finds it, and marks its rank as lost.
    }
}

std::vector<int> CoordinatorServer::descriptors() const {
    std::vector<int> all;
    for (std::size_t r = 0; r < connections_.size(); r++)
        all.push_back(connections_[r] && !broken_[r] ? connections_[r]->descriptor() : -1);
    return with_signal(std::move(all));
}

void CoordinatorServer::poll() {
    poll_clock();
    const bool heartbeat = is_heartbeat_due();
    std::vector<Received> all;
    for (int r = 0; r < job_.world_size(); r++) {
        if (connections_[static_cast<std::size_t>(r)]) {
            all.push_back(receive_from(r, heartbeat));
        } else {
            coordinator_.receive(r, {});  // its heartbeat
            poll_rank(r);
        }
    }
    // The others have ended without this process, and have reported it. (If they were stopped as
    // well, by Ctrl-Z, they are still there.)
    if (has_overslept_ && !job_.is_guest && std::ranges::any_of(all, &Received::is_lost))
        std::_Exit(1);
    // Lost ranks first: when one is killed, mpirun ends the others, and they report that too.
    std::stable_partition(all.begin(), all.end(), std::mem_fn(&Received::is_lost));
    for (const Received& received : all) {
        for (const Message& message : received.messages)
            coordinator_.receive(received.rank, message);
        if (received.is_lost)
            coordinator_.mark_lost(received.rank, "ended without saying why: was it killed?");
    }
    if (reception_)
        reception_->refuse_callers(job_.members, [this](std::size_t r) { return !broken_[r]; });
    coordinator_.poll();
    poll_sigterm(0);
}

// Receives what a process has sent; at times sends it a heartbeat.
CoordinatorServer::Received CoordinatorServer::receive_from(int rank, bool heartbeat) {
    const auto r = static_cast<std::size_t>(rank);
    Received received{rank, {}};
    if (broken_[r])
        return received;
    try {
        while (std::optional<Message> message = connections_[r]->receive())
            received.messages.push_back(std::move(*message));
        if (heartbeat)
            connections_[r]->send({});
    } catch (const std::exception&) {
        broken_[r] = received.is_lost = true;
    }
    return received;
}

// ---- CoordinatorClient

CoordinatorClient::CoordinatorClient(const Job& job, int rank,
                                     std::unique_ptr<Connection> connection)
    : CoordinatorEndpoint(job),
      rank_(rank),
      connection_(std::move(connection)),
      watchdog_([this] { return descriptors(); }, [this] { poll(); }) {}

CoordinatorClient::~CoordinatorClient() {
    send(rank_, {Message::Kind::goodbye, 0, 0, "", {}});
    connection_->finish();
}

void CoordinatorClient::send(int, const Message& message) {
    if (message.kind == Message::Kind::fail || message.kind == Message::Kind::end)
        record_error(message.text);
    try {
        connection_->send(message);
    } catch (const std::exception&) {
        // The connection is broken: the watchdog finds it, and closes the events.
    }
}

std::vector<int> CoordinatorClient::descriptors() const {
    return with_signal({closed_ ? -1 : connection_->descriptor()});
}

void CoordinatorClient::poll() {
    poll_clock();
    try {
        while (const std::optional<Message> message =
                   closed_ ? std::nullopt : connection_->receive()) {
            received_at_ = Clock::now();
            if (message->kind == Message::Kind::goodbye)
                close("has left: its program goes on without the others");
            if (message->kind == Message::Kind::result)
                take_error();
            events_.post(*message);
        }
        const std::chrono::duration<double> silence =
            Clock::now() - std::max(received_at_, awake_from_);
        if (!closed_ && job_.timeout_s > 0 && silence.count() > longest_silence_s(job_.timeout_s))
            close("has said nothing for " + format_fixed(silence.count(), 1) +
                  " s: is it stopped?");
        if (!closed_ && is_heartbeat_due())
            connection_->send({});
    } catch (const std::exception&) {
        std::this_thread::sleep_for(killing_time);  // then it is known who is left
        close("ended without saying why: was it killed?");
    }
    poll_rank(rank_);
    poll_sigterm(rank_);
}

void CoordinatorClient::record_error(const std::string& text) {
    std::lock_guard lock(mutex_);
    if (error_.empty())
        error_ = text;
}

std::string CoordinatorClient::take_error() {
    std::lock_guard lock(mutex_);
    return std::exchange(error_, "");
}

// Without the coordinator the current run has failed, and no further run is possible.
void CoordinatorClient::close(const std::string& how) {
    closed_ = true;
    const std::string error = take_error();
    RunResult result;
    result.cause = (error.empty() ? "" : error + "; ") + job_.name(0) + " " + how;
    result.reporter = lowest_rank_left(job_, rank_);
    result.is_last = true;
    events_.close(result);
}

}  // namespace ddp
