#pragma once
// When a rank's streams did what: marks between the operations that are enqueued, read when the
// stream has passed them.
#include <deque>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "common/gpu/gpu.hpp"
#include "common/report/trace.hpp"

namespace ddp {

// One operation of a rank's stream, from its begin to its end.
struct StreamSpan {
    int rank = 0;
    std::string track;  // the stream's name
    std::string what;
    double begin_s = 0;  // by the clock that all processes of a node share
    double end_s = 0;
};

// Records the spans of one stream, which must outlive this object. The events of spans that were
// read record the next ones, so that a step creates none.
class StreamTrack {
  public:
    StreamTrack(std::string name, Stream& stream) : name_(std::move(name)), stream_(stream) {}

    // Begins a span with what is enqueued from now on.
    void begin();
    // Ends that span, names it `what`, and begins the next one.
    void mark(const std::string& what);

    // Returns the spans since the last read, as those of rank `rank`. Waits for the stream.
    std::vector<StreamSpan> read(int rank);

  private:
    struct Mark {
        std::string what;  // empty: a beginning
        Event event;
    };
    void add(std::string what);
    Event take_event();

    const std::string name_;
    Stream& stream_;
    std::deque<Mark> marks_;
    std::vector<Event> spare_;
    Event now_;  // for which the host waits
};

// A StreamTrack that may be absent (a null object): then begin and mark do nothing, and the code
// that is timed need not ask.
class OptionalTrack {
  public:
    void set(StreamTrack* track) { track_ = track; }
    void begin() const {
        if (track_ != nullptr)
            track_->begin();
    }
    void mark(const std::string& what) const {
        if (track_ != nullptr)
            track_->mark(what);
    }

  private:
    StreamTrack* track_ = nullptr;
};

// Returns the spans of all ranks, in the order of ranks, on every rank. All ranks call it.
std::vector<StreamSpan> gather(Rank& rank, const std::vector<StreamSpan>& mine);

// Adds the spans to `trace`, each to the track of its rank and stream.
void add_to_trace(Trace& trace, const std::vector<StreamSpan>& spans);

}  // namespace ddp
