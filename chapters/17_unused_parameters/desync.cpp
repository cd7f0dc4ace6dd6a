// Each rank records its progress on the host; a later run compares the records:
//
//               record                                     first unsent bucket (step, bucket)
//     rank 0    step 3, sent all 3 buckets                 (4, 0)
//     rank 1    step 3, sent all 3 buckets                 (4, 0)
//     rank 2    step 3, sent bucket 0; no gradient for     (3, 1)
//               expert0.weight, expert0.bias; went on
//
// An all-reduce ends when all ranks have sent the bucket. So the smallest pair names the bucket in
// which all other ranks wait, and the ranks that have this pair are the cause: the kernels of ranks
// 0 and 1 wait in bucket 1 of step 3, although their hosts have sent bucket 2, too.
#include "17_unused_parameters/desync.hpp"

#include <algorithm>
#include <tuple>

namespace ddp {

// ---- Recording

void StepRecorder::plug_into(DdpHooks& hooks) {
    // Every forward begins a step. A hook that is there already (Join's) comes first.
    hooks.before_forward = [this, next = hooks.before_forward](bool is_reduced) {
        if (next)
            next(is_reduced);
        begin_step(is_reduced);
    };
    // A backward that lacks gradients ends here, and not in a wait, unless FindUnused or
    // StaticGraph deals with them.
    if (!hooks.after_backward)
        hooks.after_backward = [this](const Parameters& missing) { refuse(missing); };
    // The number of buckets is read again at each bucket: it is known only once they are rebuilt.
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
    state_.missing.clear();
}

// Names the missing parameters of the first bucket that was not sent: only that one can hang, since
// later buckets wait for their turn.
void StepRecorder::refuse(const Parameters& missing) {
    const BucketPlan& plan = ddp_.gradients().plan();
    state_.buckets = static_cast<int>(plan.buckets.size());
    for (const auto& parameter : missing)
        if (const std::size_t i = ddp_.gradients().index_of(*parameter);
            plan.places[i].bucket == static_cast<std::size_t>(state_.sent))
            state_.missing += (state_.missing.empty() ? "" : ", ") + parameter->name;
    throw GradientsMissing("backward ended without a gradient for " + state_.missing);
}

// ---- Comparing

std::vector<StepState> gather(Rank& rank, const StepState& mine) {
    struct Counts {
        int step, buckets, sent;
    };
    const std::vector<Counts> counts = rank.all_gather(Counts{mine.step, mine.buckets, mine.sent});
    const std::vector<std::string> missing = rank.all_gather(mine.missing);
    const std::vector<std::string> afterwards = rank.all_gather(mine.afterwards);
    std::vector<StepState> all;
    for (std::size_t r = 0; r < counts.size(); r++)
        all.push_back(
            {counts[r].step, counts[r].buckets, counts[r].sent, missing[r], afterwards[r]});
    return all;
}

namespace {

// Returns the first bucket that a rank has not sent: its step, and its number in that step. A rank
// that has sent all buckets of a step would next send the first one of the following step.
std::pair<int, int> next_bucket(const StepState& state) {
    return state.sent < state.buckets ? std::pair(state.step, state.sent)
                                      : std::pair(state.step + 1, 0);
}

std::string to_string(const std::pair<int, int>& bucket) {
    return "bucket " + std::to_string(bucket.second) + " of step " + std::to_string(bucket.first);
}

}  // namespace

std::vector<std::string> desync_report(const std::vector<StepState>& states) {
    // The bucket that stops everything: the smallest one that some rank has not sent, however many
    // more the other ranks have sent.
    const auto first = next_bucket(*std::ranges::min_element(states, {}, next_bucket));
    std::string absent;
    for (std::size_t r = 0; r < states.size(); r++)
        if (next_bucket(states[r]) == first)
            absent += (absent.empty() ? "" : ", ") + std::to_string(r);
    const bool are_several = absent.find(',') != std::string::npos;
    // One line per rank: it waits there, or lacks gradients for it, or has not reached it.
    std::vector<std::string> lines;
    for (std::size_t r = 0; r < states.size(); r++) {
        const StepState& state = states[r];
        std::string line = "rank " + std::to_string(r) + " ";
        if (next_bucket(state) != first)
            line +=
                "waits in " + to_string(first) + " for rank" + (are_several ? "s " : " ") + absent;
        else if (!state.missing.empty())
            line += "never sent " + to_string(first) + ": no gradient for " + state.missing;
        else
            line += "has not reached " + to_string(first);
        if (next_bucket(state) == first && !state.afterwards.empty())
            line += "; it " + state.afterwards;
        lines.push_back(line);
    }
    return lines;
}

}  // namespace ddp
