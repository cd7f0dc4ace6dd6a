#pragma once
// A timeline of a run, one track per rank and stream, in Chrome's trace-event format: open the file
// in ui.perfetto.dev. A rank is shown as a process, its tracks as that process's threads.
//
//     Trace trace(common.trace);
//     const Track compute = trace.track(rank, "compute");
//     {
//         Span span(trace, compute, "forward");
//         ...
//     }
//     trace.write();
//
// Times are those of steady_clock, which is the same for all processes of a node, so rank 0 may
// append the events of the other ranks to its own. In a GPU build a Span is also an NVTX range, for
// Nsight Systems.
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ddp {

// A line of the timeline; made by Trace::track.
struct Track {
    int process = 0;  // a rank
    int index = 0;    // among the tracks of the process, from the top
};

// Names and values that a viewer shows when an event is clicked on.
using TraceArguments = std::vector<std::pair<std::string, std::string>>;

// A timeline of events. All members are thread-safe.
class Trace {
  public:
    using Time = std::chrono::steady_clock::time_point;

    // Creates the file at once, so that a wrong path is noticed before the run: throws
    // std::runtime_error with path and reason. With an empty path (no --trace was given) nothing is
    // recorded.
    explicit Trace(std::filesystem::path path);

    bool enabled() const { return !path_.empty(); }

    // Returns the track of that name. A new track is placed below the other tracks of its process.
    Track track(int process, const std::string& name);

    // Adds an event that lasted from `begin` to `end`. Since a viewer stacks events, two events of
    // one track must either not overlap, or one must contain the other. Bytes of a name or argument
    // that are not UTF-8 are replaced by U+FFFD.
    void add(Track track, const std::string& name, Time begin, Time end,
             const TraceArguments& arguments = {});

    // Returns all recorded events, to be sent to the process that writes the file.
    std::string events() const;
    // Appends events that another process has recorded.
    void append(const std::string& events);

    // Writes the whole file. Throws std::runtime_error with path and reason.
    void write() const;

  private:
    void append_locked(const std::string& event);

    const std::filesystem::path path_;
    mutable std::mutex mutex_;
    std::map<int, std::vector<std::string>> tracks_;  // names by process
    std::string events_;                              // JSON objects, ",\n" between them
};

// Records the time from its construction to its destruction: one block of host code.
class Span {
  public:
    // Begins the span. `trace` must outlive it.
    Span(Trace& trace, Track track, std::string name, TraceArguments arguments = {});
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

  private:
    Trace& trace_;
    Track track_;
    std::string name_;
    TraceArguments arguments_;
    Trace::Time begin_;
};

}  // namespace ddp
