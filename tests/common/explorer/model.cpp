#include "tests/common/explorer/model.hpp"

#include <algorithm>
#include <compare>
#include <stdexcept>

namespace ddp::test {
namespace {

struct PendingStore {
    int place = 0;
    unsigned int value = 0;
    bool is_release = false;
    int fences = 0;  // with release, before it

    auto operator<=>(const PendingStore&) const = default;
};

struct ModelState {
    std::vector<int> next;
    std::vector<int> polled;  // how many places of a wait for any
    std::vector<std::vector<PendingStore>> buffers;
    std::vector<int> fences;
    std::vector<unsigned int> memory;
    Outcome seen;

    auto operator<=>(const ModelState&) const = default;
};

bool is_release(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_seq_cst;
}

// Whether the store may reach memory now: no earlier one is to the same place, and none has to
// arrive before it.
bool may_arrive(const std::vector<PendingStore>& buffer, std::size_t i) {
    for (std::size_t k = 0; k < i; k++)
        if (buffer[k].place == buffer[i].place || buffer[i].is_release ||
            buffer[k].fences < buffer[i].fences)
            return false;
    return true;
}

class Model {
  public:
    Model(const std::vector<SmallProgram>& programs, const FirstValues& first)
        : programs_(programs) {
        const std::size_t n = programs.size();
        visit({std::vector<int>(n), std::vector<int>(n), std::vector<std::vector<PendingStore>>(n),
               std::vector<int>(n), std::vector<unsigned int>(first.begin(), first.end()),
               Outcome(n * max_instructions)});
    }

    PossibleOutcomes possible;

  private:
    void visit(const ModelState& state) {
        if (!visited_.insert(state).second)
            return;
        bool is_at_end = true, goes_on = false;
        for (std::size_t p = 0; p < programs_.size(); p++) {
            for (std::size_t i = 0; i < state.buffers[p].size(); i++)
                if (may_arrive(state.buffers[p], i)) {
                    goes_on = true;
                    visit(after_arrival(state, p, i));
                }
            if (state.next[p] < programs_[p].size) {
                is_at_end = false;
                goes_on |= step(state, p);
            }
        }
        if (!goes_on && is_at_end)
            possible.outcomes.insert(state.seen);
        possible.has_deadlock |= !goes_on && !is_at_end;
    }

    static ModelState after_arrival(ModelState state, std::size_t p, std::size_t i) {
        std::vector<PendingStore>& buffer = state.buffers[p];
        state.memory[static_cast<std::size_t>(buffer[i].place)] = buffer[i].value;
        buffer.erase(buffer.begin() + static_cast<std::ptrdiff_t>(i));
        return state;
    }

    // Returns what program `p` loads at a place.
    static unsigned int loaded(const ModelState& state, std::size_t p, int place) {
        const std::vector<PendingStore>& buffer = state.buffers[p];
        const auto own = std::find_if(buffer.rbegin(), buffer.rend(),
                                      [&](const PendingStore& s) { return s.place == place; });
        return own == buffer.rend() ? state.memory[static_cast<std::size_t>(place)] : own->value;
    }

    // Goes on with the next instruction of program `p`. False if it cannot be done now.
    bool step(ModelState state, std::size_t p) {
        const auto number = static_cast<std::size_t>(state.next[p]++);
        const Instruction& now = programs_[p].code[number];
        unsigned int& memory = state.memory[static_cast<std::size_t>(now.place)];
        unsigned int& seen = state.seen[p * max_instructions + number];
        std::vector<PendingStore>& buffer = state.buffers[p];
        switch (now.kind) {
            case Instruction::read:
            case Instruction::write:
                throw std::logic_error("the model has no data");
            case Instruction::load:
                seen = loaded(state, p, now.place);
                break;
            case Instruction::store:
                buffer.push_back({now.place, now.value, is_release(now.order), state.fences[p]});
                break;
            case Instruction::add:
                if (!buffer.empty())
                    return false;
                seen = memory;
                memory += now.value;
                break;
            case Instruction::fence:
                if (now.order == std::memory_order_seq_cst && !buffer.empty())
                    return false;
                state.fences[p] += is_release(now.order);
                break;
            case Instruction::wait:
                if (loaded(state, p, now.place) < now.value)
                    return false;
                break;
            case Instruction::wait_exactly:
                if (loaded(state, p, now.place) != now.value)
                    return false;
                break;
            case Instruction::wait_any:
                return poll(state, p, now, seen);
        }
        visit(state);
        return true;
    }

    // Looks at the next of the places that a wait is for, `seen` being in the state. False if none
    // of them can end it now.
    bool poll(ModelState& state, std::size_t p, const Instruction& now, unsigned int& seen) {
        const auto is_up = [&](int turn) {
            return loaded(state, p, (now.place + turn) % max_places) >= now.value;
        };
        int& turn = state.polled[p];
        const bool can_end = is_up(0) || is_up(1);
        if (is_up(turn)) {
            seen = 1 + static_cast<unsigned int>(turn);
            turn = 0;
        } else {
            turn = (turn + 1) % max_places;
            state.next[p]--;
        }
        visit(state);
        return can_end;
    }

    const std::vector<SmallProgram>& programs_;
    std::set<ModelState> visited_;
};

}  // namespace

PossibleOutcomes outcomes_by_model(const std::vector<SmallProgram>& programs,
                                   const FirstValues& first) {
    return Model(programs, first).possible;
}

}  // namespace ddp::test
