// The exercise gather_order: plans carried out on paper, ranks that meet, and ranks that don't.
#include "exercises/22_sharded/gather_order.hpp"

#include <algorithm>
#include <string>

#include "exercises/support/sums.hpp"
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

// ---- Task step_plan

// A plan that is carried out: it knows which blocks are there and what should be computed next.
class Step {
  public:
    Step(int blocks, const std::vector<Planned>& plan)
        : blocks_(blocks), plan_(plan), is_gathered_(static_cast<std::size_t>(blocks)) {}

    void run() {
        for (place_ = 0; place_ < plan_.size(); place_++) {
            const Planned& now = plan_[place_];
            if (now.block < 0 || now.block >= blocks_)
                fail("There is no such block.");
            carry_out(now);
        }
        place_ = plan_.size();
        if (computed_ < 2 * blocks_)
            fail("The step ends before all blocks have had their forward and their backward.");
        if (to_reduce_ >= 0)
            fail("The gradients of block " + std::to_string(to_reduce_) +
                 " are not reduce-scattered.");
        if (std::ranges::count(is_gathered_, true) > 0)
            fail("A block is still gathered when the step has ended.");
        if (gathers_ != 2 * blocks_ - 1)
            fail("There are " + std::to_string(gathers_) + " gathers, and " +
                 std::to_string(2 * blocks_ - 1) +
                 " are enough: backward begins with the block in which forward ends, so "
                 "that one can stay.");
    }

  private:
    // Returns the block of a step's computation number `number`, or -1 after the last.
    int block_of(int number) const {
        return number < blocks_ ? number : number < 2 * blocks_ ? 2 * blocks_ - 1 - number : -1;
    }

    void carry_out(const Planned& now) {
        const auto block = static_cast<std::size_t>(now.block);
        switch (now.action) {
            case Action::gather:
                if (is_gathered_[block])
                    fail("This block is gathered already.");
                is_gathered_[block] = true;
                gathers_++;
                if (std::ranges::count(is_gathered_, true) > 2)
                    fail("Now three blocks are gathered: release one before the next comes.");
                break;
            case Action::release:
                if (!is_gathered_[block])
                    fail("This block is not gathered.");
                is_gathered_[block] = false;
                break;
            case Action::forward:
            case Action::backward:
                compute(now);
                break;
            case Action::reduce_scatter:
                if (to_reduce_ != now.block)
                    fail(
                        "There are no gradients of this block: they come from its backward, and "
                        "are reduced once.");
                to_reduce_ = -1;
        }
    }

    void compute(const Planned& now) {
        const Action action = computed_ < blocks_ ? Action::forward : Action::backward;
        if (now != Planned{action, block_of(computed_)})
            fail("It is the turn of " +
                 (block_of(computed_) < 0 ? std::string("nothing")
                                          : to_string({action, block_of(computed_)})) +
                 ": forward goes from block 0 to the last, and backward the other way.");
        if (!is_gathered_[static_cast<std::size_t>(now.block)])
            fail("The parameters of this block are not there: gather it first.");
        if (to_reduce_ >= 0)
            fail("The gradients of block " + std::to_string(to_reduce_) +
                 " should be reduce-scattered before that, so that they are freed.");
        const int next = block_of(computed_ + 1);
        if (next >= 0 && !is_gathered_[static_cast<std::size_t>(next)])
            fail("Nothing is gathered while this is computed: enqueue the gather of block " +
                 std::to_string(next) + ", which is the next one, before it.");
        if (action == Action::backward)
            to_reduce_ = now.block;
        computed_++;
    }

    [[noreturn]] void fail(const std::string& why) const {
        const std::vector<Planned> done(
            plan_.begin(),
            plan_.begin() + static_cast<std::ptrdiff_t>(std::min(place_ + 1, plan_.size())));
        throw Wrong("A model of " + std::to_string(blocks_) +
                    " blocks; your plan up to here: " + to_string(done) + ".\n" + why);
    }

    const int blocks_;
    const std::vector<Planned>& plan_;
    std::vector<bool> is_gathered_;
    std::size_t place_ = 0;
    int computed_ = 0, gathers_ = 0, to_reduce_ = -1;
};

void check_step_plan() {
    for (const int blocks : {3, 4, 2, 1, 9}) {
        trying("A step of " + std::to_string(blocks) + " blocks is planned.");
        const std::vector<Planned> plan = step_plan(blocks);
        Step(blocks, plan).run();
        held();
    }
}

// ---- Task agreed_blocks

std::string to_string(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers)
        text += (text.empty() ? "" : ", ") + std::to_string(number);
    return text.empty() ? "none" : text;
}

void check_agreed_blocks() {
    using Uses = std::vector<std::vector<bool>>;
    for (const Uses& uses :
         {Uses{{true, true, false, true}, {true, false, false, true}},
          Uses{{false, true, false}, {false, false, false}, {true, false, false}},
          Uses{{true, true}, {true, true}}, Uses{{false, true, false}},
          Uses{{false, false}, {false, false}}}) {
        std::string what;
        for (std::size_t rank = 0; rank < uses.size(); rank++) {
            std::vector<int> own;
            for (std::size_t b = 0; b < uses[rank].size(); b++)
                if (uses[rank][b])
                    own.push_back(static_cast<int>(b));
            what += "rank " + std::to_string(rank) + " uses blocks " + to_string(own) + "; ";
        }
        std::vector<int> right, all;
        for (std::size_t b = 0; b < uses[0].size(); b++) {
            all.push_back(static_cast<int>(b));
            if (std::ranges::any_of(uses, [&](const auto& own) { return own[b]; }))
                right.push_back(static_cast<int>(b));
        }
        trying("Of " + std::to_string(uses[0].size()) + " blocks, " + what);
        const auto found = with_one_sum(
            static_cast<int>(uses.size()), uses[0].size(),
            [&](int rank, const SumOverRanks& sum_over_ranks) {
                return agreed_blocks(uses[static_cast<std::size_t>(rank)], sum_over_ranks);
            });
        for (std::size_t rank = 0; rank < found.size(); rank++)
            if (found[rank] != right)
                throw Wrong("Of " + std::to_string(uses[0].size()) + " blocks, " + what +
                            "and rank " + std::to_string(rank) + " gathers " +
                            to_string(found[rank]) + "; right is " + to_string(right) + ".\n" +
                            (found[rank] == all
                                 ? "No rank needs the other blocks."
                                 : "A gather needs all ranks, also those that don't use the block: "
                                   "they have a shard of it. If one stays away, the others wait."));
        held();
    }
}

// ---- Task first_difference

std::string to_string(const std::optional<Difference>& difference) {
    if (!difference)
        return "there is none";
    return "call number " + std::to_string(difference->place) + ", with ranks " +
           to_string(difference->ranks);
}

void check_first_difference() {
    using Calls = std::vector<std::vector<Planned>>;
    const auto gather = [](int block) { return Planned{Action::gather, block}; };
    const auto reduce = [](int block) { return Planned{Action::reduce_scatter, block}; };
    struct Case {
        Calls calls;
        std::optional<Difference> right;
        const char* hint;
    };
    const std::vector<Planned> same = {gather(0), gather(1), reduce(1)};
    const Case cases[] = {
        {{same, same, same}, std::nullopt, "The case: all ranks have made the same calls."},
        {{same, same, {gather(0), gather(1)}, same, {gather(0)}},
         Difference{1, {4}},
         "The case: rank 4 has made one call only. The others wait for it in the second."},
        {{{gather(0), gather(1)}, {gather(0), gather(2)}, {gather(0), gather(2)}},
         Difference{1, {1, 2}},
         "The case: ranks 1 and 2 differ from rank 0, and not from each other."},
        {{{gather(0), gather(1), gather(2)}, {gather(0), gather(2), gather(1)}},
         Difference{1, {1}},
         "The case: both ranks gather the same blocks, but in a different order."},
        {{{gather(0), gather(1)}, {gather(0), reduce(1)}, {gather(0), gather(1)}},
         Difference{1, {1}},
         "The case: a gather and a reduce-scatter of the same block. They are different calls."},
        {{{gather(0)}, same, same},
         Difference{1, {1, 2}},
         "The case: rank 0 has not made the second call, and ranks 1 and 2 have."},
        {{{}, {}, {gather(0)}}, Difference{0, {2}}, "The case: two ranks have made no call."}};
    for (const Case& each : cases) {
        std::string what;
        for (std::size_t rank = 0; rank < each.calls.size(); rank++)
            what += "rank " + std::to_string(rank) + ": " + to_string(each.calls[rank]) + ". ";
        trying(what);
        const auto found = first_difference(each.calls);
        if (found != each.right)
            throw Wrong(what + "You say: " + to_string(found) +
                        "; right is: " + to_string(each.right) + ".\n" + each.hint);
        held();
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"step_plan", check_step_plan},
            {"agreed_blocks", check_agreed_blocks},
            {"first_difference", check_first_difference}};
}

}  // namespace ddp::test
