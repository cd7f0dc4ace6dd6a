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

// From SIGTERM until it is obeyed: long enough for every rank to hear why, and for this process to
// end by itself. mpirun loses its patience after a second or so.
constexpr auto last_words = 500ms;

constexpr auto heartbeat_period = 50ms;

// A watchdog that looks every 50 ms and has not looked for so long was stopped, and all with it.
constexpr auto stopped_after = 1s;

// The lowest rank of this host that is still there, but for rank 0. (Who is on another host cannot
// be seen from here, and is taken to be there.)
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
    const bool is_due = now - heartbeat_ > heartbeat_period;
    if (is_due)
        heartbeat_ = now;
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
    if (now - std::exchange(last_look_, now) > stopped_after)
        awake_since_ = now;
    if (sigterm_->has_come() && !told_to_end_) {
        if (now - awake_since_ <
            stopped_after)  // the others know, and one of them has told the reader
            sigterm_->obey();
        told_to_end_ = now;
        send(rank, {Message::Kind::fail, 0, 0, job_.name(rank) + " was told to end (SIGTERM)", {}});
    }
    if (told_to_end_ && now - *told_to_end_ > last_words) {
        // The rank's own thread, which would say why, is busy with something else.
        const RunFailed failure = events(rank).last_failure(rank);
        if (failure.is_to_be_told_here())
            std::cerr << "error: " << failure.what() << std::endl;
        sigterm_->obey();
    }
}

// ---- CoordinatorServer

CoordinatorServer::CoordinatorServer(const Job& job, Connections connections)
    : CoordinatorEndpoint(job),
      events_(job.members.size()),
      connections_(std::move(connections)),
      silenced_(job.members.size(), false),
      coordinator_(
          [&] {
              std::vector<std::string> names;
              for (int r = 0; r < job.world_size(); r++)
                  names.push_back(job.name(r));
              return names;
          }(),
          job.timeout_s, job.has_processes,
          [this](int rank, const Message& message) { deliver(rank, message); }),
      watchdog_([this] { return descriptors(); }, [this] { poll(); }) {}

CoordinatorServer::~CoordinatorServer() {
    coordinator_.receive(
        0, {Message::Kind::goodbye, 0, 0, "", {}});  // after all that it still delivers
    for (int r = 0; r < job_.world_size(); r++) {
        const auto& connection = connections_[static_cast<std::size_t>(r)];
        if (!connection)
            continue;
        deliver(r, {Message::Kind::goodbye, 0, 0, "", {}});
        connection->finish();
    }
}

void CoordinatorServer::deliver(int rank, const Message& message) {
    const auto& connection = connections_[static_cast<std::size_t>(rank)];
    if (!connection)
        return events(rank).post(message);
    try {
        connection->send(message);
    } catch (const std::exception&) {
        // The watchdog finds the connection closed, and says whose it was.
    }
}

std::vector<int> CoordinatorServer::descriptors() const {
    std::vector<int> all;
    for (std::size_t r = 0; r < connections_.size(); r++)
        all.push_back(connections_[r] && !silenced_[r] ? connections_[r]->descriptor() : -1);
    return with_signal(std::move(all));
}

void CoordinatorServer::poll() {
    const bool heartbeat = is_heartbeat_due();
    std::vector<Received> all;
    for (int r = 0; r < job_.world_size(); r++) {
        if (connections_[static_cast<std::size_t>(r)]) {
            all.push_back(receive_from(r, heartbeat));
        } else {
            coordinator_.receive(r, {});  // alive
            poll_rank(r);
        }
    }
    // Lost ranks first: mpirun tells the others of one that was killed to end, and they say so.
    std::ranges::stable_partition(all, &Received::is_lost);
    for (const Received& heard : all) {
        for (const Message& message : heard.messages)
            coordinator_.receive(heard.rank, message);
        if (heard.is_lost)
            coordinator_.mark_lost(heard.rank, "ended without saying why: was it killed?");
    }
    coordinator_.poll();
    poll_sigterm(0);
}

// Hears what a process has said, and at times tells it that this one is alive.
CoordinatorServer::Received CoordinatorServer::receive_from(int rank, bool heartbeat) {
    const auto r = static_cast<std::size_t>(rank);
    Received heard{rank, {}};
    if (silenced_[r])
        return heard;
    try {
        while (std::optional<Message> message = connections_[r]->receive())
            heard.messages.push_back(std::move(*message));
        if (heartbeat)
            connections_[r]->send({});
    } catch (const std::exception&) {
        silenced_[r] = heard.is_lost = true;
    }
    return heard;
}

// ---- CoordinatorClient

CoordinatorClient::CoordinatorClient(const Job& job, int rank,
                                     std::unique_ptr<Connection> connection)
    : CoordinatorEndpoint(job),
      rank_(rank),
      connection_(std::move(connection)),
      watchdog_([this] { return descriptors(); }, [this] { poll(); }) {}

CoordinatorClient::~CoordinatorClient() {
    // The ranks above look whether this one is left, to tell the reader.
    if (events_.is_closed() && std::uncaught_exceptions() > 0)
        std::this_thread::sleep_for(last_words / 2);
    send(rank_, {Message::Kind::goodbye, 0, 0, "", {}});
    connection_->finish();
}

void CoordinatorClient::send(int, const Message& message) {
    if (message.kind == Message::Kind::fail || message.kind == Message::Kind::end)
        record_error(message.text);
    try {
        connection_->send(message);
    } catch (const std::exception&) {
        // The watchdog finds the connection closed, and closes the inbox.
    }
}

std::vector<int> CoordinatorClient::descriptors() const {
    return with_signal({closed_ ? -1 : connection_->descriptor()});
}

void CoordinatorClient::poll() {
    try {
        while (const std::optional<Message> message =
                   closed_ ? std::nullopt : connection_->receive()) {
            heard_ = Clock::now();
            if (message->kind == Message::Kind::goodbye)
                close("has left: its program goes on without the others");
            if (message->kind == Message::Kind::result)
                take_error();
            events_.post(*message);
        }
        const std::chrono::duration<double> silence = Clock::now() - heard_;
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

// Without the meeting there is no further run, and what goes on now has failed.
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
