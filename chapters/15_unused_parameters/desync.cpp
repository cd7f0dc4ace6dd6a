#include "15_unused_parameters/desync.hpp"

#include <algorithm>
#include <sstream>
#include <tuple>

namespace ddp {

// ---- Writing down

void StepRecorder::plug_into(DdpHooks& hooks) {
    hooks.before_forward = [this, next = hooks.before_forward](bool is_reduced) {
        if (next)
            next(is_reduced);
        begin_step(is_reduced);
    };
    if (!hooks.after_backward)
        hooks.after_backward = [this](const Parameters& missing) { refuse(missing); };
    ddp_.set_bucket_hook(
        [this](Communicator& communicator, Tensor bucket, Stream& stream, const std::string& name) {
            state_.buckets = static_cast<int>(ddp_.gradients().plan().buckets.size());
            state_.sent++;
            average_bucket(communicator, bucket, stream, name);
        });
}

void StepRecorder::begin_step(bool is_reduced) {
    state_.step++;
    state_.buckets = is_reduced ? static_cast<int>(ddp_.gradients().plan().buckets.size()) : 0;
    state_.sent = 0;
    state_.lost.clear();
}

void StepRecorder::refuse(const Parameters& missing) {
    const BucketPlan& plan = ddp_.gradients().plan();
    state_.buckets = static_cast<int>(plan.buckets.size());
    for (const auto& parameter : missing)
        if (const std::size_t i = ddp_.gradients().index_of(*parameter);
            plan.places[i].bucket == static_cast<std::size_t>(state_.sent))
            state_.lost += (state_.lost.empty() ? "" : ", ") + parameter->name;
    throw GradientsMissing("backward has ended without a gradient of " + state_.lost);
}

// ---- Comparing

std::vector<StepState> gather(Rank& rank, const StepState& mine) {
    std::ostringstream text;
    text << mine.step << ' ' << mine.buckets << ' ' << mine.sent << '\n'
         << mine.lost << '\n'
         << mine.then << '\n';
    std::vector<StepState> all;
    for (const std::string& theirs : rank.all_gather(text.str())) {
        StepState& state = all.emplace_back();
        std::istringstream lines(theirs);
        lines >> state.step >> state.buckets >> state.sent;
        std::getline(lines.ignore(), state.lost);
        std::getline(lines, state.then);
    }
    return all;
}

namespace {

// The bucket that a rank would send next: its step, and its number there.
std::pair<int, int> next_bucket(const StepState& state) {
    return state.sent < state.buckets ? std::pair(state.step, state.sent)
                                      : std::pair(state.step + 1, 0);
}

std::string text_of(const std::pair<int, int>& bucket) {
    return "bucket " + std::to_string(bucket.second) + " of step " + std::to_string(bucket.first);
}

}  // namespace

// A bucket's all-reduce ends when all ranks have sent it. So the first bucket that some have not
// sent is the one in which all others wait, however many more they have sent behind it.
std::vector<std::string> desync_report(const std::vector<StepState>& states) {
    const auto first = next_bucket(*std::ranges::min_element(states, {}, next_bucket));
    std::string behind;
    for (std::size_t r = 0; r < states.size(); r++)
        if (next_bucket(states[r]) == first)
            behind += (behind.empty() ? "" : ", ") + std::to_string(r);
    const bool are_several = behind.find(',') != std::string::npos;
    std::vector<std::string> lines;
    for (std::size_t r = 0; r < states.size(); r++) {
        const StepState& state = states[r];
        std::string line = "rank " + std::to_string(r) + " ";
        if (next_bucket(state) != first)
            line +=
                "waits in " + text_of(first) + " for rank" + (are_several ? "s " : " ") + behind;
        else if (!state.lost.empty())
            line += "never sent " + text_of(first) + ": no gradient of " + state.lost;
        else
            line += "has not come to " + text_of(first);
        if (next_bucket(state) == first && !state.then.empty())
            line += "; it " + state.then;
        lines.push_back(line);
    }
    return lines;
}

}  // namespace ddp
