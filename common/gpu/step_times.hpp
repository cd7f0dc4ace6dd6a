#pragma once
// Where the time of a step goes: marks in a stream, read without waiting for it.
#include <string>
#include <vector>

#include "common/gpu/stream.hpp"

namespace ddp {

// The times of a step's parts, added up over all steps. While a step is enqueued, mark() puts an
// event into the stream at the end of each part; the time between two events is that of a
// part. The events of a step are read one step later, so the host never waits for the step that it
// has just enqueued.
class StepTimes {
  public:
    // `stream` must outlive this object.
    explicit StepTimes(Stream& stream) : stream_(stream) {}

    // Marks the beginning of a step and of its first part.
    void begin();
    // Marks the end of a part: all that was enqueued since the last mark belongs to part `name`.
    void mark(const std::string& name);
    // Ends the step: all its parts are enqueued. Adds up the times of the step before.
    void end();
    // Waits for the last step and adds up its times.
    void finish();

    struct Part {
        std::string name;
        double seconds = 0;  // the sum over all steps
    };
    const std::vector<Part>& parts() const { return parts_; }  // in the order of a step
    int steps() const { return steps_; }
    double total() const;

  private:
    struct Step {
        std::vector<Event> events;       // reused from step to step; event 0 is the beginning
        std::vector<std::size_t> parts;  // parts[i] ends at event i + 1
    };

    void add_up(Step& step);
    std::size_t part_of(const std::string& name);

    Stream& stream_;
    std::vector<Part> parts_;
    Step running_, previous_;
    int steps_ = 0;
};

}  // namespace ddp
