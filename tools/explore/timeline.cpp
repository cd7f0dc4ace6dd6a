#include "tools/explore/timeline.hpp"

#include <algorithm>

#include "07_broadcast/collective.hpp"
#include "common/report/table.hpp"

namespace ddp {
namespace {

using cuda_on_cpu::Action;
using cuda_on_cpu::Exploration;
using cuda_on_cpu::ExploredFailure;
using cuda_on_cpu::ExploredStep;

constexpr std::size_t max_lines = 24;

std::string rank_text(int stream) {
    return "rank " + std::to_string(stream);
}

std::string verb_of(Action action) {
    constexpr const char* verbs[] = {"reads", "writes", "reads", "writes", "updates", "waits for"};
    return verbs[static_cast<int>(action)];
}

// The flags of collectives hold two numbers: collective 2, step 3 is 2.3 (07_broadcast).
std::string text_of_value(std::uint64_t value) {
    const std::uint64_t collective = value >> 32, step = value & 0xffff'ffff;
    return collective == 0 ? std::to_string(step)
                           : std::to_string(collective) + "." + std::to_string(step);
}

// Returns "reads own posted[0] = 1.1".
std::string text_of_step(const ExploredStep& step, const Places& places) {
    std::string place = places.name_of(step.address, step.bytes);
    const std::string self = rank_text(places.rank_of(step)) + "'s";
    if (place.starts_with(self))
        place.replace(0, self.size(), "own");
    const std::string part = places.part_of_rank(step);
    std::string text =
        (part.empty() ? "" : part.substr(1) + " ") + verb_of(step.action) + " " + place;
    if (step.action < Action::load)
        return text;
    text += " = " + text_of_value(step.value);
    return step.order == std::memory_order_relaxed && step.action != Action::wait
               ? text + ", relaxed"
               : text;
}

// Returns whether a reader of the timeline wants to see it: flags and the protocol's arrays.
bool is_about_data(const ExploredStep& step, const Places& places) {
    const std::string name = places.name_of(step.address, step.bytes);
    for (const char* own : {"record", "numbers", ".place", "error report", "result"})
        if (name.find(own) != std::string::npos)
            return false;
    return true;
}

std::size_t column_width(int ranks) {
    return Table::max_width / static_cast<std::size_t>(ranks);
}

// Returns a line with `text` in the column of a rank.
std::string line_in_column(int rank, int ranks, const std::string& text) {
    const std::size_t width = column_width(ranks);
    return std::string(static_cast<std::size_t>(rank) * width, ' ') + shortened(text, width - 1) +
           "\n";
}

}  // namespace

std::string text_of_failure(const Exploration& exploration, const Places& places) {
    switch (exploration.failure) {
        case ExploredFailure::none:
            return "";
        case ExploredFailure::deadlock:
            return "deadlock: ranks wait for what no rank will write";
        case ExploredFailure::wrong_result:
            return "wrong: " + exploration.what_is_wrong;
        case ExploredFailure::endless:
            return "an execution that does not end";
        case ExploredFailure::race:
            break;
    }
    const ExploredStep &last = exploration.timeline.back(), &first = exploration.conflict;
    const auto text = [&](const ExploredStep& step) {
        return std::to_string(places.rank_of(step)) + places.part_of_rank(step) + " " +
               verb_of(step.action);
    };
    return "race at " + places.name_of(first.address, first.bytes) + ": " + text(first) + ", " +
           text(last);
}

std::string timeline_of(const Exploration& exploration, const Places& places, int ranks) {
    if (exploration.failure == ExploredFailure::none)
        return "";
    std::vector<ExploredStep> steps;
    for (const ExploredStep& step : exploration.timeline)
        if (is_about_data(step, places) || &step == &exploration.timeline.back())
            steps.push_back(step);
    const std::size_t left_out = steps.size() - std::min(steps.size(), max_lines);
    std::string text;
    for (int rank = 0; rank < ranks; rank++) {
        text.resize(static_cast<std::size_t>(rank) * column_width(ranks), ' ');
        text += rank_text(rank);
    }
    text += "\n";
    if (left_out > 0)
        text += "... (" + std::to_string(left_out) + " events)\n";
    for (std::size_t i = left_out; i < steps.size(); i++)
        text += line_in_column(places.rank_of(steps[i]), ranks, text_of_step(steps[i], places));
    return text + text_of_failure(exploration, places) + "\n";
}

}  // namespace ddp
