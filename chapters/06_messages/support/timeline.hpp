#pragma once
// What the streams of a rank did, and when: marks between what is enqueued, read when all is done.
#include <deque>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "common/gpu/gpu.hpp"
#include "common/report/trace.hpp"

namespace ddp {

// Something that a stream of a rank did.
struct StreamSpan {
    int rank = 0;
    std::string track;  // the stream's name
    std::string what;
    double begin_s = 0;  // of the clock that the processes of a host share
    double end_s = 0;
};

// One stream's marks.
class StreamTrack {
  public:
    StreamTrack(std::string name, Stream& stream) : name_(std::move(name)), stream_(stream) {}

    // What is enqueued from now on, up to the next mark, ...
    void begin();
    // ... is `what`, and from here on something else.
    void mark(const std::string& what);

    // All that was marked since the last read. Waits for the stream.
    std::vector<StreamSpan> read(int rank);

  private:
    struct Mark {
        std::string what;  // empty: a beginning
        Event event;
    };
    void add(std::string what);

    const std::string name_;
    Stream& stream_;
    std::deque<Mark> marks_;
};

// Everyone's intervals, by rank, on every rank. All ranks call it together.
std::vector<StreamSpan> gather(Rank& rank, const std::vector<StreamSpan>& mine);

void add_to_trace(Trace& trace, const std::vector<StreamSpan>& spans);

}  // namespace ddp
