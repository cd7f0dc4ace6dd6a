#include "05_ranks/meeting.hpp"

#include <algorithm>

#include "common/report/units.hpp"

namespace ddp {
namespace {

std::string seconds_between(Meeting::Clock::time_point begin, Meeting::Clock::time_point end) {
    return format_fixed(std::chrono::duration<double>(end - begin).count(), 1) + " s";
}

// "barrier (call 3)".
std::string text_of(const Message& call) {
    return call.text + " (call " + std::to_string(call.number) + ")";
}

// A process's watchdog says that it is alive 20 times in this time; a stopped one does not.
constexpr std::chrono::seconds kSilence(1);

}  // namespace

Meeting::Meeting(std::vector<std::string> names, double timeout_s, bool can_be_lost,
                 Deliver deliver)
    : timeout_s_(timeout_s), can_be_lost_(can_be_lost), deliver_(std::move(deliver)) {
    for (std::string& name : names) {
        Seat& seat = seats_.emplace_back();
        seat.name = std::move(name);
        seat.heard = Clock::now();
    }
}

void Meeting::take(int rank, const Message& message) {
    std::lock_guard lock(mutex_);
    Seat& seat = seats_[static_cast<std::size_t>(rank)];
    seat.heard = Clock::now();
    if (seat.lost)  // it comes back too late: the others have gone on without it
        return;
    if (message.kind == Message::Kind::goodbye)
        seat.left = true;
    if (message.epoch != epoch_ && message.epoch != 0)
        return;
    if (message.kind == Message::Kind::call && cause_.empty())
        arrive(rank, message);
    if (message.kind == Message::Kind::fail)
        fail(rank, message.text);
    if (message.kind == Message::Kind::end) {
        seat.ended = true;
        seat.waiting = false;
        fail(rank, message.text.empty() ? disagreement(rank) : message.text);
        settle();
    }
}

void Meeting::arrive(int rank, const Message& message) {
    Seat& seat = seats_[static_cast<std::size_t>(rank)];
    seat.call = message;
    seat.since = Clock::now();
    seat.waiting = true;
    fail(rank, disagreement(rank));
    if (!std::ranges::all_of(seats_, &Seat::waiting))
        return;
    Message gathered{Message::Kind::gathered, epoch_, message.number, message.text, {}};
    for (Seat& each : seats_) {
        each.waiting = false;
        gathered.parts.push_back(std::move(each.call.parts.at(0)));
    }
    for (std::size_t r = 0; r < seats_.size(); r++)
        deliver_(static_cast<int>(r), gathered);
}

// Where `rank` is now cannot be where the others are: why, or "".
std::string Meeting::disagreement(int rank) const {
    const Seat& seat = seats_[static_cast<std::size_t>(rank)];
    for (const Seat& other : seats_) {
        const Seat& waiting = seat.waiting ? seat : other;
        const Seat& there = seat.waiting ? other : seat;
        if (&other == &seat || !waiting.waiting)
            continue;
        if (there.waiting &&
            (there.call.text != waiting.call.text || there.call.number != waiting.call.number))
            return other.name + " is in " + text_of(other.call) + ", but " + seat.name + " is in " +
                   text_of(seat.call) + ": all ranks must make the same calls in the same order";
        if (there.ended || there.left)
            return waiting.name + " waits in " + text_of(waiting.call) + " for " + there.name +
                   ", which has " + (there.ended ? "ended its part of the run" : "left") +
                   ": all ranks must make the same calls";
    }
    return "";
}

void Meeting::fail(int rank, const std::string& cause) {
    if (cause.empty() || !cause_.empty())
        return;
    failed_ = Clock::now();
    cause_ = cause + silent(failed_);
    const Message failed{
        Message::Kind::failed, epoch_, static_cast<std::uint64_t>(rank), cause_, {}};
    for (std::size_t r = 0; r < seats_.size(); r++) {
        seats_[r].waiting = false;
        if (!seats_[r].lost && !seats_[r].left)
            deliver_(static_cast<int>(r), failed);
    }
}

void Meeting::lose(int rank, const std::string& how) {
    std::lock_guard lock(mutex_);
    Seat& seat = seats_[static_cast<std::size_t>(rank)];
    if (seat.lost || seat.left)
        return;
    seat.lost = true;
    fail(rank, seat.name + " " + how);
    settle();
}

void Meeting::look() {
    std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    const auto first = std::ranges::min_element(seats_, {}, [](const Seat& seat) {
        return seat.waiting ? seat.since : Clock::time_point::max();
    });
    // A rank whose kernels wait, too, knows more of why, and may speak first.
    const auto head_start = (now - first->since) / 11;
    if (first->waiting && is_late(first->since, now - head_start)) {
        const std::string cause = first->name + " waited " + seconds_between(first->since, now) +
                                  " in " + text_of(first->call) + " for " + missing();
        for (Seat& seat : seats_)  // one that is stopped will not hear that the run has failed
            seat.lost |= can_be_lost_ && !seat.waiting && now - seat.heard > kSilence;
        fail(static_cast<int>(first - seats_.begin()), cause);
        settle();
    }
    if (can_be_lost_ && !cause_.empty() && is_late(failed_, now)) {
        for (Seat& seat : seats_)
            seat.lost |= !seat.ended;
        settle();
    }
}

// "rank 2, which did not come (its last call was barrier, call 2)", of all that are not there.
std::string Meeting::missing() const {
    std::string text;
    for (const Seat& seat : seats_) {
        if (seat.waiting)
            continue;
        text += (text.empty() ? "" : ", and ") + seat.name + ", which did not come (";
        text += seat.call.number == 0 || seat.call.epoch != epoch_
                    ? "it has made no call yet"
                    : "its last call was " + text_of(seat.call);
        text += ")";
    }
    return text;
}

// "; rank 2 has said nothing for 2.1 s: is it stopped?", of all for which the others may have
// waited in vain.
std::string Meeting::silent(Clock::time_point now) const {
    std::string text;
    for (const Seat& seat : seats_)
        if (can_be_lost_ && !seat.left && now - seat.heard > kSilence &&
            is_late(seat.heard, now + (now - seat.heard) / 9))
            text += "; " + seat.name + " has said nothing for " + seconds_between(seat.heard, now) +
                    ": is it stopped?";
    return text;
}

bool Meeting::is_late(Clock::time_point since, Clock::time_point now) const {
    return timeout_s_ > 0 && now - since > std::chrono::duration<double>(timeout_s_);
}

// The verdict, once every rank has ended the run or is lost.
void Meeting::settle() {
    const auto is_done = [](const Seat& seat) { return seat.ended || seat.lost || seat.left; };
    if (!std::ranges::all_of(seats_, is_done))
        return;
    Verdict verdict;
    verdict.cause = cause_;
    verdict.is_last = std::ranges::any_of(seats_, &Seat::lost);
    const auto first_left = std::ranges::find(seats_, false, &Seat::lost);
    // If all are given up, rank 0 still lives: this meeting is in its process.
    verdict.reporter =
        first_left == seats_.end() ? 0 : static_cast<int>(first_left - seats_.begin());
    const Message message = verdict.to_message(epoch_);
    epoch_++;
    cause_.clear();
    for (std::size_t r = 0; r < seats_.size(); r++) {
        seats_[r].ended = false;
        if (!seats_[r].left)  // one that is lost may be awakened, and must know that all is told
            deliver_(static_cast<int>(r), message);
    }
}

Verdict Verdict::from(const Message& message) {
    return {message.text, static_cast<int>(message.number), !message.parts.empty()};
}

Message Verdict::to_message(std::uint64_t epoch) const {
    Message message{Message::Kind::verdict, epoch, static_cast<std::uint64_t>(reporter), cause, {}};
    if (is_last)
        message.parts.push_back("a rank is lost");
    return message;
}

}  // namespace ddp
