#include "common/gpu/step_times.hpp"

#include <algorithm>

namespace ddp {

// Event 0 is the beginning of the step, event i + 1 the end of its part i.
void StepTimes::begin() {
    running_.parts.clear();
    if (running_.events.empty())
        running_.events.emplace_back();
    running_.events[0].record(stream_);
}

// Events are made in the first steps and then used again: creating one costs time.
void StepTimes::mark(const std::string& name) {
    running_.parts.push_back(part_of(name));
    if (running_.events.size() <= running_.parts.size())
        running_.events.emplace_back();
    running_.events[running_.parts.size()].record(stream_);
}

void StepTimes::end() {
    // Keep this step for later, and read the step before it, which is done or nearly so.
    std::swap(running_, previous_);
    add_up(running_);
    running_.parts.clear();
    steps_++;
}

// Nothing follows the last step of an epoch, so it is read here.
void StepTimes::finish() {
    add_up(previous_);
    previous_.parts.clear();
}

// Adds a finished step's times to the sums. Its parts may differ from those of the step before:
// each is found by its name.
void StepTimes::add_up(Step& step) {
    if (step.parts.empty())
        return;
    step.events[step.parts.size()].synchronize();  // when the last event is done, all are
    for (std::size_t i = 0; i < step.parts.size(); i++)
        parts_[step.parts[i]].seconds += step.events[i + 1].seconds_since(step.events[i]);
}

// Returns the index of the part `name`, which is appended at its first use.
std::size_t StepTimes::part_of(const std::string& name) {
    const auto known = std::find_if(parts_.begin(), parts_.end(),
                                    [&](const Part& part) { return part.name == name; });
    if (known != parts_.end())
        return static_cast<std::size_t>(known - parts_.begin());
    parts_.push_back({name});
    return parts_.size() - 1;
}

// The parts leave no gaps, so their sum is the time of all steps.
double StepTimes::total() const {
    double sum = 0;
    for (const Part& part : parts_)
        sum += part.seconds;
    return sum;
}

}  // namespace ddp
