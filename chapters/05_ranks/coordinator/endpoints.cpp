#include "05_ranks/coordinator/endpoints.hpp"

#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <thread>
#include <utility>

namespace ddp {
namespace {

using namespace std::chrono_literals;

// The time from SIGTERM until it is obeyed: long enough for the cause to reach every rank, and for
// this process to end by itself. mpirun kills after about a second.
constexpr auto grace_period = 500ms;

constexpr auto heartbeat_period = 50ms;

// A watchdog polls every 50 ms. One that has not polled for this long was stopped with its process.
constexpr auto stopped_after = 1s;

// Returns the lowest rank other than 0 whose process is still there. (A process on another host
// cannot be seen from here, and counts as there.)
int lowest_rank_left(const Job& job, int own_rank) {
    const std::string& host = job.members[static_cast<std::size_t>(own_rank)].host;
    for (int r = 1; r < own_rank; r++) {
        const Member& member = job.members[static_cast<std::size_t>(r)];
        if (member.host != host || kill(member.process, 0) == 0 || errno == EPERM)
            return r;
    }
    return own_rank;
}

}  // namespace

CoordinatorEndpoint::CoordinatorEndpoint(const Job& job) : job_(job) {
    if (job.has_processes)
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

void CoordinatorEndpoint::poll_rank(int rank) {
    if (std::optional<Message> error = events(rank).error()) {
        error->text = job_.name(rank) + ": " + error->text;
        send(rank, *error);
    }
}

void CoordinatorEndpoint::poll_sigterm(int rank) {
    if (!sigterm_)
        return;
    const Clock::time_point now = Clock::now();
    if (now - std::exchange(polled_at_, now) > stopped_after)
        awake_since_ = now;
    if (sigterm_->has_come() && !sigterm_at_) {
        // A process that was stopped until now has nothing to report: the others have done so.
        if (now - awake_since_ < stopped_after)
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

CoordinatorServer::CoordinatorServer(const Job& job, Connections connections)
    : CoordinatorEndpoint(job),
      events_(job.members.size()),
      connections_(std::move(connections)),
      broken_(job.members.size(), false),
      coordinator_(
          [&] {
              std::vector<std::string> names;
              for (int r = 0; r < job.world_size(); r++)
                  names.push_back(job.name(r));
              return names;
          }(),
          job.timeout_s, job.has_processes,
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
    // Lost ranks first: when one is killed, mpirun ends the others, and they report that too.
    std::ranges::stable_partition(all, &Received::is_lost);
    for (const Received& received : all) {
        for (const Message& message : received.messages)
            coordinator_.receive(received.rank, message);
        if (received.is_lost)
            coordinator_.mark_lost(received.rank, "ended without saying why: was it killed?");
    }
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
    // The process of the lowest rank left reports a failure. Stay visible until higher ranks have
    // looked for it.
    if (events_.is_closed() && std::uncaught_exceptions() > 0)
        std::this_thread::sleep_for(grace_period / 2);
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
        const std::chrono::duration<double> silence = Clock::now() - received_at_;
        if (job_.timeout_s > 0 && silence.count() > 1.5 * job_.timeout_s)
            close("has said nothing for too long: is it stopped?");
        if (!closed_ && is_heartbeat_due())
            connection_->send({});
    } catch (const std::exception&) {
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
