#include "05_ranks/attendance.hpp"

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
constexpr auto kLastWords = 500ms;

constexpr auto kHeartbeat = 50ms;

// A watchdog that looks every 50 ms and has not looked for so long was stopped, and all with it.
constexpr auto kStopped = 1s;

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

Attendance::Attendance(const Job& job) : job_(job) {
    if (job.has_processes)
        sigterm_.emplace();
}

std::vector<int> Attendance::with_signal(std::vector<int> descriptors) const {
    descriptors.push_back(sigterm_ ? sigterm_->descriptor() : -1);
    return descriptors;
}

bool Attendance::is_heartbeat_due() {
    const Clock::time_point now = Clock::now();
    const bool is_due = now - heartbeat_ > kHeartbeat;
    if (is_due)
        heartbeat_ = now;
    return is_due;
}

void Attendance::look_after(int rank) {
    if (std::optional<Message> complaint = inbox(rank).complaint()) {
        complaint->text = job_.name(rank) + ": " + complaint->text;
        say(rank, *complaint);
    }
}

void Attendance::look_for_sigterm(int rank) {
    if (!sigterm_)
        return;
    const Clock::time_point now = Clock::now();
    if (now - std::exchange(last_look_, now) > kStopped)
        awake_since_ = now;
    if (sigterm_->has_come() && !told_to_end_) {
        if (now - awake_since_ < kStopped)  // the others know, and one of them has told the reader
            sigterm_->obey();
        told_to_end_ = now;
        say(rank, {Message::Kind::fail, 0, 0, job_.name(rank) + " was told to end (SIGTERM)", {}});
    }
    if (told_to_end_ && now - *told_to_end_ > kLastWords) {
        // The rank's own thread, which would say why, is busy with something else.
        const RunFailed failure = inbox(rank).last_failure(rank);
        if (failure.is_to_be_told_here())
            std::cerr << "error: " << failure.what() << std::endl;
        sigterm_->obey();
    }
}

// ---- MeetingHost

MeetingHost::MeetingHost(const Job& job, Connections connections)
    : Attendance(job),
      inboxes_(job.members.size()),
      connections_(std::move(connections)),
      silenced_(job.members.size(), false),
      meeting_(
          [&] {
              std::vector<std::string> names;
              for (int r = 0; r < job.world_size(); r++)
                  names.push_back(job.name(r));
              return names;
          }(),
          job.timeout_s, job.has_processes,
          [this](int rank, const Message& message) { deliver(rank, message); }),
      watchdog_([this] { return descriptors(); }, [this] { look(); }) {}

MeetingHost::~MeetingHost() {
    meeting_.take(0, {Message::Kind::goodbye, 0, 0, "", {}});  // after all that it still delivers
    for (int r = 0; r < job_.world_size(); r++) {
        const auto& connection = connections_[static_cast<std::size_t>(r)];
        if (!connection)
            continue;
        deliver(r, {Message::Kind::goodbye, 0, 0, "", {}});
        connection->finish();
    }
}

void MeetingHost::deliver(int rank, const Message& message) {
    const auto& connection = connections_[static_cast<std::size_t>(rank)];
    if (!connection)
        return inbox(rank).put(message);
    try {
        connection->send(message);
    } catch (const std::exception&) {
        // The watchdog finds the connection closed, and says whose it was.
    }
}

std::vector<int> MeetingHost::descriptors() const {
    std::vector<int> all;
    for (std::size_t r = 0; r < connections_.size(); r++)
        all.push_back(connections_[r] && !silenced_[r] ? connections_[r]->descriptor() : -1);
    return with_signal(std::move(all));
}

void MeetingHost::look() {
    const bool heartbeat = is_heartbeat_due();
    std::vector<Heard> all;
    for (int r = 0; r < job_.world_size(); r++) {
        if (connections_[static_cast<std::size_t>(r)]) {
            all.push_back(listen_to(r, heartbeat));
        } else {
            meeting_.take(r, {});  // alive
            look_after(r);
        }
    }
    // Lost ranks first: mpirun tells the others of one that was killed to end, and they say so.
    std::ranges::stable_partition(all, &Heard::is_lost);
    for (const Heard& heard : all) {
        for (const Message& message : heard.messages)
            meeting_.take(heard.rank, message);
        if (heard.is_lost)
            meeting_.lose(heard.rank, "ended without saying why: was it killed?");
    }
    meeting_.look();
    look_for_sigterm(0);
}

// Hears what a process has said, and at times tells it that this one is alive.
MeetingHost::Heard MeetingHost::listen_to(int rank, bool heartbeat) {
    const auto r = static_cast<std::size_t>(rank);
    Heard heard{rank, {}};
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

// ---- MeetingGuest

MeetingGuest::MeetingGuest(const Job& job, int rank, std::unique_ptr<Connection> connection)
    : Attendance(job),
      rank_(rank),
      connection_(std::move(connection)),
      watchdog_([this] { return descriptors(); }, [this] { look(); }) {}

MeetingGuest::~MeetingGuest() {
    // The ranks above look whether this one is left, to tell the reader.
    if (inbox_.is_closed() && std::uncaught_exceptions() > 0)
        std::this_thread::sleep_for(kLastWords / 2);
    say(rank_, {Message::Kind::goodbye, 0, 0, "", {}});
    connection_->finish();
}

void MeetingGuest::say(int, const Message& message) {
    if (message.kind == Message::Kind::fail || message.kind == Message::Kind::end)
        complain(message.text);
    try {
        connection_->send(message);
    } catch (const std::exception&) {
        // The watchdog finds the connection closed, and closes the inbox.
    }
}

std::vector<int> MeetingGuest::descriptors() const {
    return with_signal({closed_ ? -1 : connection_->descriptor()});
}

void MeetingGuest::look() {
    try {
        while (const std::optional<Message> message =
                   closed_ ? std::nullopt : connection_->receive()) {
            heard_ = Clock::now();
            if (message->kind == Message::Kind::goodbye)
                close("has left: its program goes on without the others");
            if (message->kind == Message::Kind::verdict)
                take_complaint();
            inbox_.put(*message);
        }
        const std::chrono::duration<double> silence = Clock::now() - heard_;
        if (job_.timeout_s > 0 && silence.count() > 1.5 * job_.timeout_s)
            close("has said nothing for too long: is it stopped?");
        if (!closed_ && is_heartbeat_due())
            connection_->send({});
    } catch (const std::exception&) {
        close("ended without saying why: was it killed?");
    }
    look_after(rank_);
    look_for_sigterm(rank_);
}

void MeetingGuest::complain(const std::string& text) {
    std::lock_guard lock(mutex_);
    if (complaint_.empty())
        complaint_ = text;
}

std::string MeetingGuest::take_complaint() {
    std::lock_guard lock(mutex_);
    return std::exchange(complaint_, "");
}

// Without the meeting there is no further run, and what goes on now has failed.
void MeetingGuest::close(const std::string& how) {
    closed_ = true;
    const std::string complaint = take_complaint();
    Verdict verdict;
    verdict.cause = (complaint.empty() ? "" : complaint + "; ") + job_.name(0) + " " + how;
    verdict.reporter = lowest_rank_left(job_, rank_);
    verdict.is_last = true;
    inbox_.close(verdict);
}

}  // namespace ddp
