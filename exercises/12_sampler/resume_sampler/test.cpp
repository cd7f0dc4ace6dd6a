// The exercise resume_sampler, beside the chapter's sampler: epochs that are broken off and go on
// with other ranks, sample by sample.
#include "exercises/12_sampler/resume_sampler.hpp"

#include <algorithm>

#include "12_sampler/sampler.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

std::string to_string(const EpochState& state) {
    return "seed " + std::to_string(state.seed) + ", epoch " + std::to_string(state.epoch) + ", " +
           std::to_string(state.taken) + " taken";
}

// ---- Task state

struct Part {
    int world_size, batch, steps;
};

// Returns what a wrong state tells, or "".
std::string cause_of(const EpochState& found, const EpochState& begin, int samples,
                     const Part& part) {
    const int left = (samples - begin.taken) / part.world_size;
    const int wanted = part.steps * part.batch, done = std::min(left, wanted);
    const auto is = [&](int epoch, int taken) {
        return found.seed == begin.seed && found.epoch == epoch && found.taken == taken;
    };
    if (found.seed != begin.seed)
        return "The seed is the sampler's, and stays: epochs differ by their number.\n";
    if (is(begin.epoch, begin.taken + wanted * part.world_size))
        return "A rank cannot take more than it has left: its last batch is smaller.\n";
    if (is(begin.epoch, begin.taken + done * part.world_size))
        return "Each rank had (" + std::to_string(samples) + " - " + std::to_string(begin.taken) +
               ") / " + std::to_string(part.world_size) + " = " + std::to_string(left) +
               " samples left, and has taken " + std::to_string(done) +
               ": none is left, so this is the beginning of the next epoch. Do you compare the "
               "two, after 0 steps as well?\n";
    if (is(begin.epoch, done * part.world_size))
        return "You forget what was taken before `begin`.\n";
    if (is(begin.epoch + 1, begin.taken + done * part.world_size) ||
        is(begin.epoch + 1, begin.taken))
        return "At the beginning of the next epoch nothing is taken yet.\n";
    if (is(begin.epoch, begin.taken + done))
        return "You count the samples of one rank, and not of all together.\n";
    if (found.epoch == begin.epoch + 1 && done < left)
        return "Each rank still has samples: the epoch is not over, even if they do not fill a "
               "batch.\n";
    return "";
}

void check_state(const EpochState& begin, int samples, const Part& part, const EpochState& right,
                 const std::string& hint) {
    const EpochState found = state_after(begin, samples, part.world_size, part.batch, part.steps);
    if (found != right)
        throw Wrong(std::to_string(samples) + " samples, " + to_string(begin) + "; then " +
                    std::to_string(part.steps) + " steps of " + std::to_string(part.world_size) +
                    " ranks with batches of " + std::to_string(part.batch) + ": you say " +
                    to_string(found) + "; right is " + to_string(right) + ".\n" +
                    cause_of(found, begin, samples, part) + hint);
}

void check_states() {
    check_state({5, 2, 0}, 24, {2, 3, 2}, {5, 2, 12}, "The case: an epoch has begun.");
    check_state({0, 7, 64}, 103, {3, 5, 2}, {0, 7, 94},
                "The case: the epoch was in the middle already.");
    check_state({0, 7, 0}, 103, {4, 8, 4}, {0, 8, 0},
                "The case: each rank has 25 samples, so its last batch has one, and the epoch is "
                "over. The three that do not divide are left out.");
    check_state({9, 3, 0}, 24, {2, 4, 3}, {9, 4, 0},
                "The case: the last batch is a whole one, and nothing is left out.");
    check_state({9, 0, 94}, 103, {2, 3, 1}, {9, 0, 100},
                "The case: one more for each rank is left.");
    check_state({9, 0, 8}, 13, {3, 1, 1}, {9, 1, 0},
                "The case: five are left, one for each of the three ranks. Other ranks took the "
                "eight, so 13 / 3 - 8 / 3, both rounded down, would be two.");
    check_state({9, 0, 100}, 103, {4, 3, 0}, {9, 1, 0},
                "The case: three are left, and four ranks go on, so the epoch is over without a "
                "step.");
}

// ---- Task rest

constexpr std::uint64_t seed = 11;

std::string ranks_text(int world_size) {
    return std::to_string(world_size) + (world_size == 1 ? " rank" : " ranks");
}

std::string wrong_count(std::size_t yours, std::size_t right) {
    return "These are " + std::to_string(yours) + " samples, and not " + std::to_string(right) +
           ": leave out the remainder. Padded, a sample comes twice in one epoch; dealt out, one "
           "rank waits for another for ever.\n";
}

// Returns what a wrong rest tells, or "".
std::string cause_of_rest(const std::vector<int>& yours, const std::vector<int>& right,
                          const EpochState& state, int samples, int rank, int world_size) {
    // What the rank would get from entry `first` of `order` on, every `stride` entries.
    const auto dealt = [&](const std::vector<int>& order, int first, int stride) {
        std::vector<int> own;
        for (std::size_t i = 0; i < right.size(); i++)
            own.push_back(order[static_cast<std::size_t>(first + static_cast<int>(i) * stride) %
                                order.size()]);
        return own;
    };
    const auto of_seed = [&](std::uint64_t with) { return random_permutation(samples, with); };
    const std::vector<int> order = of_seed(seed + static_cast<std::uint64_t>(state.epoch));
    const int each = static_cast<int>(right.size());
    if (yours.size() != right.size())
        return wrong_count(yours.size(), right.size());
    if (yours == dealt(order, state.taken + rank * each, 1))
        return "You cut the rest like a cake; it is dealt like cards.\n";
    if (yours == dealt(of_seed(seed), state.taken + rank, world_size))
        return "That is the order of epoch 0: this epoch has one of its own.\n";
    std::vector<int> none(static_cast<std::size_t>(samples));
    for (int i = 0; i < samples; i++)
        none[static_cast<std::size_t>(i)] = i;
    if (yours == dealt(none, state.taken + rank, world_size))
        return "The samples are not shuffled in your order.\n";
    if (yours == dealt(random_permutation(samples - state.taken,
                                          seed + static_cast<std::uint64_t>(state.epoch)),
                       rank, world_size))
        return "You shuffle what is left once more. The order is that of the whole epoch, without "
               "its front.\n";
    if (yours == dealt(order, rank, world_size))
        return "You begin at the front of the order, which was taken already.\n";
    if (yours == dealt(order, state.taken / world_size + rank, world_size))
        return "All ranks together have taken `taken` entries, not each of them.\n";
    return "";
}

void require_as_if_unbroken(int samples, int world_size, int epoch, int taken_each) {
    for (int rank = 0; rank < world_size; rank++) {
        DistributedSampler sampler(samples, rank, world_size, {true, seed, true});
        sampler.set_epoch(epoch);
        std::vector<int> right = sampler.indices();
        right.erase(right.begin(), right.begin() + taken_each);
        const EpochState state{seed, epoch, taken_each * world_size};
        const std::vector<int> yours = rest_of_epoch(state, samples, rank, world_size);
        if (yours != right)
            throw Wrong(std::to_string(samples) + " samples, epoch " + std::to_string(epoch) +
                        ": " + ranks_text(world_size) + " have taken " +
                        std::to_string(taken_each) + " each, and as many ranks go on. Rank " +
                        std::to_string(rank) +
                        " does not get what would have come without a break.\n" +
                        cause_of_rest(yours, right, state, samples, rank, world_size) +
                        "In which order does the chapter's sampler go through this epoch, and "
                        "where does this rank stand in it?");
    }
}

// An epoch goes on again and again: each of so many ranks takes so many of what it has left.
void check_epoch(int samples, int number, const std::vector<std::pair<int, int>>& stretches) {
    EpochState state{seed, number, 0};
    std::vector<bool> seen(static_cast<std::size_t>(samples));
    std::string story = std::to_string(samples) + " samples, epoch " + std::to_string(number);
    for (const auto& [world_size, each] : stretches) {
        story += ", then " + ranks_text(world_size);
        const EpochState begin = state;
        const auto right = static_cast<std::size_t>((samples - begin.taken) / world_size);
        for (int rank = 0; rank < world_size; rank++) {
            std::vector<int> rest = rest_of_epoch(begin, samples, rank, world_size);
            const std::string who = story + ", of which this is rank " + std::to_string(rank);
            if (rest.size() != right)
                throw Wrong(who + ". " + wrong_count(rest.size(), right));
            rest.resize(std::min(right, static_cast<std::size_t>(each)));
            for (const int sample : rest) {
                if (sample < 0 || sample >= samples)
                    throw Wrong(who + ": there is no sample " + std::to_string(sample) + ".");
                if (seen[static_cast<std::size_t>(sample)])
                    throw Wrong(who + ": sample " + std::to_string(sample) +
                                " comes twice in one epoch. What was taken is the front of the "
                                "order that all ranks share. Deal the rest like cards.");
                seen[static_cast<std::size_t>(sample)] = true;
                state.taken++;
            }
        }
    }
}

void check_rest() {
    require_as_if_unbroken(24, 2, 0, 0);
    require_as_if_unbroken(24, 2, 0, 5);
    require_as_if_unbroken(103, 4, 0, 16);
    require_as_if_unbroken(103, 4, 3, 16);
    for (const int number : {0, 4})
        check_epoch(103, number, {{4, 8}, {3, 7}, {5, 3}, {2, 103}});
    check_epoch(11, 2, {{1, 8}, {3, 11}});           // 9 of 11 divide by three, and 3 are left
    check_epoch(50, 1, {{1, 9}, {7, 50}, {8, 50}});  // in the end fewer are left than ranks
}

}  // namespace

std::vector<Task> tasks() {
    return {{"state", check_states}, {"rest", check_rest}};
}

}  // namespace ddp::test
