#include "06_messages/support/timeline.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <sstream>

namespace ddp {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(Clock::time_point time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
}

Clock::time_point time_of(double seconds) {
    return Clock::time_point(
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
}

}  // namespace

void StreamTrack::begin() {
    add("");
}

void StreamTrack::mark(const std::string& what) {
    add(what);
}

void StreamTrack::add(std::string what) {
    marks_.push_back({std::move(what), take_event()});
    marks_.back().event.record(stream_);
}

// Returns an event of a span that was read; a new one if none is left.
Event StreamTrack::take_event() {
    if (spare_.empty())
        return Event(EventFor::times);
    Event event = std::move(spare_.back());
    spare_.pop_back();
    return event;
}

// Events give the time between each other, not the time of day. So an event is recorded and waited
// for, and then the clock is read: it shows that event's time, or a later one if this thread woke
// late. The earliest of several tries is the best.
std::vector<StreamSpan> StreamTrack::read(int rank) {
    constexpr int tries = 10;
    Event last = take_event();
    last.record(stream_);
    double last_s = std::numeric_limits<double>::infinity();
    for (int i = 0; i < tries; i++) {
        now_.record(stream_);
        now_.synchronize();
        last_s = std::min(last_s, seconds_of(Clock::now()) - now_.seconds_since(last));
    }
    std::vector<StreamSpan> spans;
    double before_s = 0;
    for (Mark& mark : marks_) {
        const double time_s = last_s - last.seconds_since(mark.event);
        if (!mark.what.empty())
            spans.push_back({rank, name_, mark.what, before_s, time_s});
        before_s = time_s;
        spare_.push_back(std::move(mark.event));
    }
    marks_.clear();
    spare_.push_back(std::move(last));
    return spans;
}

std::vector<StreamSpan> gather(Rank& rank, const std::vector<StreamSpan>& mine) {
    std::ostringstream text;
    text.precision(17);
    for (const StreamSpan& span : mine)
        text << span.rank << ' ' << span.begin_s << ' ' << span.end_s << ' ' << span.track << '\t'
             << span.what << '\n';
    std::vector<StreamSpan> all;
    for (const std::string& theirs : rank.all_gather(text.str())) {
        std::istringstream lines(theirs);
        StreamSpan span;
        while (lines >> span.rank >> span.begin_s >> span.end_s &&
               std::getline(lines.ignore(), span.track, '\t') && std::getline(lines, span.what))
            all.push_back(span);
    }
    return all;
}

void add_to_trace(Trace& trace, const std::vector<StreamSpan>& spans) {
    for (const StreamSpan& span : spans)
        trace.add(trace.track(span.rank, span.track), span.what, time_of(span.begin_s),
                  time_of(span.end_s));
}

}  // namespace ddp
