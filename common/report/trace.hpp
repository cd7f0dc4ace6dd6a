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
// Times are those of steady_clock, which the processes of one host share: rank 0 may append the
// events of the others to its own. On a GPU build a Span is an NVTX range too, for Nsight Systems.
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
    int rank = 0;
    int index = 0;  // among the tracks of the rank, from the top
};

// What a viewer shows of an event that is clicked on: names and values.
using TraceArguments = std::vector<std::pair<std::string, std::string>>;

// Every member may be called by any thread at any time.
class Trace {
  public:
    using Time = std::chrono::steady_clock::time_point;

    // Creates the file at once, so that a path that cannot be written is known before the run:
    // throws std::runtime_error with path and reason. With an empty path (no --trace was given)
    // nothing is kept.
    explicit Trace(std::filesystem::path path);

    bool enabled() const { return !path_.empty(); }

    // The track of that name; a new one goes below the other tracks of its rank.
    Track track(int rank, const std::string& name);

    // Something that lasted from `begin` to `end`. Of two events of one track, one must contain the
    // other or be over before it begins: a viewer stacks them. Bytes of a name or argument that are
    // no UTF-8 are replaced by the sign for that.
    void add(Track track, const std::string& name, Time begin, Time end,
             const TraceArguments& arguments = {});

    // All that was recorded, to be sent to the process that writes the file, and there appended.
    std::string events() const;
    void append(const std::string& events);

    // Writes the whole file. Throws std::runtime_error with path and reason.
    void write() const;

  private:
    void append_locked(const std::string& event);

    const std::filesystem::path path_;
    mutable std::mutex mutex_;
    std::map<int, std::vector<std::string>> tracks_;  // names by rank
    std::string events_;                              // JSON objects, ",\n" between them
};

// Records the time from its construction to its destruction: one block of host code.
class Span {
  public:
    // `trace` must live longer.
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
