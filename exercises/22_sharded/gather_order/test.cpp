// The exercise gather_order: plans carried out on paper, and ranks that don't meet.
#include "exercises/22_sharded/gather_order.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

std::string to_string(const Planned& planned) {
    static const char* names[] = {"gather", "forward", "backward", "release", "reduce_scatter"};
    return names[static_cast<int>(planned.action)] + (" " + std::to_string(planned.block));
}
std::string to_string(const std::vector<Planned>& plan) {
    std::string text;
    for (const Planned& planned : plan)
        text += (text.empty() ? "" : ", ") + to_string(planned);
    return text.empty() ? "nothing" : text;
}
std::string to_string(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers)
        text += (text.empty() ? "" : ", ") + std::to_string(number);
    return text.empty() ? "none" : text;
}

// Carries out a plan. Returns what is wrong with call number `place`, or with the end, or "".
std::string wrong_in(const std::vector<Planned>& plan, int blocks, std::size_t& place) {
    std::set<int> gathered;
    int computed = 0, gathers = 0, to_reduce = -1;
    const auto computation = [&](int number) {
        return number < blocks ? Planned{Action::forward, number}
                               : Planned{Action::backward, 2 * blocks - 1 - number};
    };
    for (place = 0; place < plan.size(); place++) {
        const auto& [action, block] = plan[place];
        if (action == Action::gather) {
            gathers++;
            if (!gathered.insert(block).second)
                return "This block is gathered already.";
            if (gathered.size() > 2)
                return "Now three blocks are gathered: release one before the next comes.";
        } else if (action == Action::release) {
            if (gathered.erase(block) == 0)
                return "This block is not gathered.";
        } else if (action == Action::reduce_scatter) {
            if (to_reduce != block)
                return "There are no gradients of this block: its backward makes them, once.";
            to_reduce = -1;
        } else {
            if (plan[place] != computation(computed++))
                return "Forward goes from block 0 to the last, and backward the other way.";
            if (!gathered.contains(block))
                return "The parameters of this block are not there: gather it first.";
            if (to_reduce >= 0)
                return "The gradients of block " + std::to_string(to_reduce) +
                       " should be reduce-scattered before that, so that they are freed.";
            const int next = computation(computed).block;
            if (next >= 0 && !gathered.contains(next))
                return "Nothing is gathered while this is computed: enqueue the gather of block " +
                       std::to_string(next) + ", which is the next one, before it.";
            to_reduce = action == Action::backward ? block : -1;
        }
    }
    if (computed < 2 * blocks || to_reduce >= 0)
        return "Not all blocks have had their forward, backward and reduce-scatter.";
    if (!gathered.empty())
        return "A block is still gathered when the step has ended.";
    if (gathers != 2 * blocks - 1)
        return std::to_string(2 * blocks - 1) +
               " gathers are enough, as backward begins with the "
               "block in which forward ends, so that one can stay.";
    return "";
}

void check_step_plan() {
    for (const int blocks : {3, 4, 2, 1, 9}) {
        const std::string what = "A step of " + std::to_string(blocks) + " blocks: ";
        trying(what);
        std::vector<Planned> plan = step_plan(blocks);
        std::size_t place = 0;
        const std::string wrong = wrong_in(plan, blocks, place);
        plan.resize(std::min(plan.size(), place + 1));
        if (!wrong.empty())
            throw Wrong(what + to_string(plan) + ".\n" + wrong);
    }
}

void check_first_difference() {
    using Calls = std::vector<std::vector<Planned>>;
    const Planned gather0{Action::gather, 0}, gather1{Action::gather, 1},
        gather2{Action::gather, 2}, reduce1{Action::reduce_scatter, 1};
    const std::vector<Planned> same = {gather0, gather1, reduce1};
    struct Case {
        Calls calls;
        std::optional<Difference> right;
        const char* hint;
    };
    const Case cases[] = {
        {{same, same, same}, {}, "All ranks have made the same calls."},
        {{same, same, {gather0, gather1}, same, {gather0}},
         {{1, {4}}},
         "Rank 4 has made one call only. The others wait for it in the second."},
        {{{gather0, gather1}, {gather0, gather2}, {gather0, gather2}},
         {{1, {1, 2}}},
         "Ranks 1 and 2 differ from rank 0, and not from each other."},
        {{{gather0, gather1, gather2}, {gather0, gather2, gather1}},
         {{1, {1}}},
         "Both ranks gather the same blocks, but in a different order."},
        {{{gather0, gather1}, {gather0, reduce1}, {gather0, gather1}},
         {{1, {1}}},
         "A gather and a reduce-scatter of the same block. They are different calls."},
        {{{}, {}, {gather0}}, {{0, {2}}}, "Two ranks have made no call."}};
    for (const auto& [calls, right, hint] : cases) {
        std::string what;
        for (const std::vector<Planned>& of_rank : calls)
            what += "Rank " + std::to_string(&of_rank - calls.data()) + ": " + to_string(of_rank) +
                    ". ";
        trying(what + hint);
        const auto found = first_difference(calls);
        const auto text = [](const std::optional<Difference>& difference) {
            return difference ? "call " + std::to_string(difference->place) + ", with ranks " +
                                    to_string(difference->ranks)
                              : "there is none";
        };
        if (found != right)
            throw Wrong(what + "You say: " + text(found) + "; right is: " + text(right) + ".\n" +
                        hint);
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"step_plan", check_step_plan}, {"first_difference", check_first_difference}};
}

}  // namespace ddp::test
