// Stateless model checking: the kernels run again and again, each time in another order. Two orders
// that differ only in steps that do not depend on each other are the same to everybody, so one of
// them is enough:
//
//     stream 0:  A = 1        stream 1:  B = 1; load A       dependent: the store and the load of A
//
//     A=1  B=1  load A ┐                 B=1  load A  A=1  ┐
//     B=1  A=1  load A ┘ one of these    (sees the old A)  ┘ and this one: two executions of three
//
// Dynamic partial-order reduction finds out which orders those are. It looks at an execution, and
// wherever two dependent steps could have come the other way round (a race) it notes for the state
// before the first one which process must also be tried there. (Flanagan and Godefroid, "Dynamic
// partial-order reduction for model checking software", POPL 2005; which process it is by source
// sets: Abdulla, Aronis, Jonsson and Sagonas, "Optimal dynamic partial order reduction", POPL
// 2014.) What was tried in a state sleeps beyond it until a dependent step comes. (Godefroid, sleep
// sets.) Stores wait in buffers, from which they arrive as steps of processes of their own. (Zhang,
// Kusano and Wang, "Dynamic partial order reduction for relaxed memory models", PLDI 2015.)
//
// A stream that has polled in vain is not asked again before one of the places that it polls is
// written, and such a poll counts as no step: so executions end, and one in which all streams wait
// is a deadlock. A wait for a value or more that several stores could end ends with the first of
// them: with a later one the stream would only know more of the others. (Kokologiannakis, Ren and
// Vafeiadis, "Dynamic partial order reductions for spinloops", FMCAD 2021, do it at compile time.)
#include <algorithm>
#include <bit>
#include <chrono>
#include <stdexcept>

#include "execution.hpp"
#include "launches.hpp"
#include "memory.hpp"
#include "protection.hpp"
#include "runtime.hpp"

namespace cuda_on_cpu {
namespace {

// By process: number of its last step that comes before, plus 1; 0: none does.
using StepClock = std::array<std::uint16_t, max_processes>;
constexpr std::size_t max_steps = 20'000;

ProcessSet set_of(int process) {
    return ProcessSet{1} << process;
}
int lowest(ProcessSet set) {
    const auto low = static_cast<std::uint64_t>(set), high = static_cast<std::uint64_t>(set >> 64);
    return low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(high);
}
template <class Work>
void for_each(ProcessSet set, Work work) {
    for (; set != 0; set &= set - 1)
        work(lowest(set));
}

// A state of the current execution, and the step that is taken from it.
struct Node {
    int process = 0;
    NextStep step;
    StepClock before{};      // what comes before the step, and the step itself
    StepClock past{};        // what comes before it by itself, whatever it finds at its place
    std::vector<int> races;  // earlier steps that could have come behind it
    int loads_from = -1;     // the last step before that has written there
    // A load: whether it ends a wait, which steps have woken the stream, and where the stream can
    // be asked again.
    bool ends_wait = false;
    bool finds_own = false;  // a store of the stream, which has not arrived
    std::vector<int> woken_by;
    Execution::Moment moment;
    ProcessSet tried = 0, asleep = 0;
    ProcessSet to_try = 0;
};

class Search {
  public:
    Search(Execution& execution, const ExplorationOptions& options)
        : execution_(execution), options_(options) {}

    Exploration run() {
        const auto begin = std::chrono::steady_clock::now();
        const auto seconds = [&] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        };
        do {
            execute();
            if (execution_.has_found_shared()) {  // all anew, with more steps
                path_.clear();
                result_.executions = 0;
            } else if (result_.failure == ExploredFailure::none) {
                note_races();
                result_.is_complete = !back_up();
            }
        } while (!result_.is_complete && result_.failure == ExploredFailure::none &&
                 seconds() < options_.max_seconds);
        result_.is_complete |= result_.failure != ExploredFailure::none;
        result_.race = execution_.race();
        execution_.take_back();
        execution_.require_unchanged();
        result_.seconds = seconds();
        return result_;
    }

  private:
    // ---- One execution: first along the path of the last one up to where it leaves it, then on

    // The past of a place: the steps that a further one may depend on.
    struct Place {
        int last_write = -1;
        std::vector<int> loads;  // since then, and earlier ones that further stores leave alike
    };

    void execute() {
        places_.clear();
        last_of_.fill(-1);
        begun_ = path_.size();
        known_ = begun_ == 0 ? 0 : begun_ - 1;  // the last one of the path is new
        execution_.begin();
        for (std::size_t number = 0; !execution_.is_to_be_left(); number++) {
            if (number >= path_.size() && !go_on())
                return;
            if ((execution_.enabled() & set_of(path_[number].process)) == 0) {  // cannot come first
                if (number < known_)
                    throw std::logic_error(
                        "the explorer has lost its way: it cannot repeat itself");
                return repeats();
            }
            prepare(static_cast<int>(number));
            if (number >= known_ && could_have_ended_earlier(static_cast<int>(number))) {
                if (!put_aside(path_[number]))
                    return repeats();
                number--;
                continue;
            }
            const int in_vain = execution_.step(path_[number].process, static_cast<int>(number));
            if (NextStep& step = path_[number].step; step.kind == NextStep::Kind::update)
                step.value = execution_.updated();
            if (in_vain > 0) {
                if (!take_back(in_vain))
                    return;
                number = path_.size() - 1;
            }
        }
        result_.failure = execution_.failure();
    }

    // Ends an execution in which what was to be tried cannot be: it has no races of its own.
    void repeats() { path_.back().races.clear(); }

    // Chooses the process of the next step. False if there is none: the execution is at its end, or
    // all that could go on has been tried from an equal state.
    bool go_on() {
        const ProcessSet enabled = execution_.enabled();
        const ProcessSet asleep = asleep_now();
        if (enabled == 0) {
            end_execution();
            return false;
        }
        if ((enabled & ~asleep) == 0)
            return false;
        if (path_.size() >= max_steps) {
            result_.failure = ExploredFailure::endless;
            return false;
        }
        Node node;
        node.process = preferred(enabled & ~asleep);
        node.asleep = asleep;
        node.tried = node.to_try = set_of(node.process);
        path_.push_back(node);
        return true;
    }

    // Chooses one of the processes: the stream of the step before, so that a poll is not
    // interrupted; then other streams. Stores arrive as late as they can, and first where somebody
    // waits for them: so a wait ends with the first store that can end it, and seldom finds its
    // flag up, of which the explorer would have to ask what else it could have found.
    int preferred(ProcessSet of) const {
        const int last = path_.empty() ? 0 : path_.back().process;
        if (last < execution_.streams() && (of & set_of(last)) != 0)
            return last;
        const ProcessSet streams = of & (set_of(execution_.streams()) - 1);
        const ProcessSet awaited = of & execution_.awaited();
        return lowest(streams != 0 ? streams : awaited != 0 ? awaited : of);
    }

    void end_execution() {
        result_.executions++;
        result_.steps = std::max(result_.steps, path_.size());
        if (execution_.is_under_way()) {
            result_.failure = ExploredFailure::deadlock;
        } else if (result_.what_is_wrong = options_.what_is_wrong();
                   !result_.what_is_wrong.empty()) {
            result_.failure = ExploredFailure::wrong_result;
        }
    }

    // Returns what was tried in the state before and does not depend on its step: it need not be
    // tried here.
    ProcessSet asleep_now() const {
        if (path_.empty())
            return 0;
        const Node& last = path_.back();
        ProcessSet asleep = 0;
        for_each((last.asleep | last.tried) & ~set_of(last.process), [&](int process) {
            if (!execution_.next(process).depends_on(last.step))
                asleep |= set_of(process);
        });
        return asleep;
    }

    // Looks at the step of the path's node `number`, which is to be taken.
    void prepare(int number) {
        Node& node = path_[static_cast<std::size_t>(number)];
        const int process = node.process;
        node.step = execution_.next(process);
        node.woken_by.clear();
        if (static_cast<std::size_t>(number) >= known_)
            node.ends_wait = process < execution_.streams() && execution_.ends_wait(process);
        if (process < execution_.streams()) {
            node.woken_by = execution_.woken_by(process);
            node.finds_own = execution_.finds_own(process);
        }
        order(node, number);
        if (node.step.kind == NextStep::Kind::load && static_cast<std::size_t>(number) >= known_)
            node.moment = execution_.moment_of(process);
    }

    bool would_go_on(const Node& load, std::optional<std::uint64_t> value) {
        return execution_.would_go_on(load.process, load.moment, value);
    }
    // Returns whether it would with what a step has stored; -1: with what was there at first.
    bool would_go_on_with(const Node& load, int step) {
        if (step < 0)
            return would_go_on(load, std::nullopt);
        const NextStep& by = path_[static_cast<std::size_t>(step)].step;
        return by.kind == NextStep::Kind::arrival && would_go_on(load, by.value);
    }
    // Returns whether a load that goes on is a wait: with the value that was there at first it
    // would poll again, or with 0, where that one is enough.
    bool is_wait(const Node& load) {
        return !would_go_on(load, std::nullopt) || !would_go_on(load, 0);
    }

    // Finds out whether a load that has not polled before ends a wait all the same. If an earlier
    // store could have ended it, too, or what was there at first, the load is to be tried there and
    // not here: the stream knows less of the others there, and all that is possible when it has
    // loaded here is possible there.
    bool could_have_ended_earlier(int number) {
        Node& load = path_[static_cast<std::size_t>(number)];
        if (load.step.kind != NextStep::Kind::load || load.ends_wait ||
            !would_go_on_with(load, load.loads_from) || !is_wait(load))
            return false;
        load.ends_wait = true;
        int passed = -1;  // the earliest store that need not have come
        for (int store = load.loads_from; store >= 0 && load.past[process_of(store)] <= store;) {
            const int earlier = path_[static_cast<std::size_t>(store)].loads_from;
            if (!would_go_on_with(load, earlier) ||
                (earlier >= 0 && process_of(earlier) != process_of(store)))
                break;
            passed = store;
            store = earlier;
        }
        if (passed < 0)
            return false;
        reverse(passed, number);
        return true;
    }

    // Lets another process take the step in place of this load, which need not be tried here before
    // something else is stored at its place. False if there is no other.
    bool put_aside(Node& load) {
        take_back_last(load.process);
        const ProcessSet others = execution_.enabled() & ~load.asleep & ~load.tried;
        if (path_.size() == begun_ || others == 0)
            return false;
        load.process = preferred(others);
        load.tried |= set_of(load.process);
        load.to_try |= set_of(load.process);
        return true;
    }

    // Returns whether a load has ended a wait that this later write would end as well. Then they
    // are independent: behind it, the stream would only know more of the others. Flags only grow,
    // and most waits are for a value or more; but the wait is asked. (Where several streams write,
    // the order of their stores matters, too.)
    bool ends_alike(int load, const Node& later) {
        const Node& node = path_[static_cast<std::size_t>(load)];
        return node.ends_wait && later.step.kind == NextStep::Kind::arrival &&
               would_go_on_with(node, node.loads_from) &&
               (node.loads_from < 0 ||
                path_[static_cast<std::size_t>(node.loads_from)].process == later.process) &&
               would_go_on(node, later.step.value);
    }

    // Finds out which steps come before this one, and which it races with.
    void order(Node& node, int number) {
        const int process = node.process;
        node.before = {};
        node.races.clear();
        const auto comes_after = [&](int step) {
            if (step < 0)
                return;
            const StepClock& before = path_[static_cast<std::size_t>(step)].before;
            for (std::size_t i = 0; i < before.size(); i++)
                node.before[i] = std::max(node.before[i], before[i]);
        };
        const auto depends_on = [&](int step) {
            if (step < 0)
                return;
            if (!comes_before(step, node))
                node.races.push_back(step);
        };
        comes_after(last_of_[static_cast<std::size_t>(process)]);
        for (const int step : execution_.needed_by(process))
            comes_after(step);
        node.past = node.before;
        if (node.step.address != nullptr) {
            Place& place = places_[node.step.address];
            std::vector<int> alike;  // loads that this write would not have changed
            if (node.step.writes()) {
                std::ranges::copy_if(place.loads, std::back_inserter(alike),
                                     [&](int load) { return ends_alike(load, node); });
                std::erase_if(place.loads,
                              [&](int load) { return std::ranges::count(alike, load) > 0; });
                for (const int load : place.loads)
                    depends_on(load);
                for (const int load : place.loads)
                    comes_after(load);
            }
            node.loads_from = place.last_write;
            depends_on(place.last_write);
            comes_after(place.last_write);
            if (node.step.writes())
                place = {number, alike};
            else
                place.loads.push_back(number);
        }
        node.before[static_cast<std::size_t>(process)] = static_cast<std::uint16_t>(number + 1);
        last_of_[static_cast<std::size_t>(process)] = number;
    }

    std::size_t process_of(int step) const {
        return static_cast<std::size_t>(path_[static_cast<std::size_t>(step)].process);
    }

    bool comes_before(int step, const Node& node) const {
        return node.before[process_of(step)] > step;
    }

    // Takes the last `steps` of the last stream back, loads of a poll in vain. (Where steps of
    // others came between them, the earlier loads stay: they do no harm.) False if that leaves
    // nothing of what was to be tried: the stream could not go on here, which makes this execution
    // the same as others.
    bool take_back(int steps) {
        const int process = path_.back().process;
        for (int i = 0; i < steps && !path_.empty() && path_.back().process == process; i++) {
            take_back_last(process);
            if (path_.size() == begun_) {
                repeats();
                return false;
            }
            path_.pop_back();
        }
        return true;
    }

    // Forgets that the last node's step, a load of this stream, was noted.
    void take_back_last(int process) {
        places_[path_.back().step.address].loads.pop_back();
        int& last = last_of_[static_cast<std::size_t>(process)];
        for (last = static_cast<int>(path_.size()) - 2; last >= 0; last--)
            if (path_[static_cast<std::size_t>(last)].process == process)
                return;
    }

    // ---- Other executions that this one points to

    // Notes for each race what is to be tried in the state before its first step.
    void note_races() {
        for (std::size_t second = known_; second < path_.size(); second++)
            for (const int first : path_[second].races)
                reverse(first, static_cast<int>(second));
    }

    // The steps between the two that do not need the first one, and then the second one, could all
    // have come before the first. Whoever would begin there is to be tried, unless one of them is.
    void reverse(int first, int second) {
        const Node& last = path_[static_cast<std::size_t>(second)];
        if (last.step.kind == NextStep::Kind::load) {
            const int passed = passed_by(last, first);
            if (passed < 0)
                return;
            first = passed;
        }
        std::vector<int> independent;
        for (int step = first + 1; step < second; step++)
            if (!comes_before(first, path_[static_cast<std::size_t>(step)]))
                independent.push_back(step);
        if (has_ended_wait(first, last, independent))
            return;
        independent.push_back(second);
        ProcessSet seen = 0, beginners = 0;
        for (const int step : independent) {
            const Node& node = path_[static_cast<std::size_t>(step)];
            const bool follows_another = std::ranges::any_of(
                independent, [&](int other) { return other < step && comes_before(other, node); });
            if ((seen & set_of(node.process)) == 0 && !follows_another)
                beginners |= set_of(node.process);
            seen |= set_of(node.process);
        }
        Node& state = path_[static_cast<std::size_t>(first)];
        if ((state.to_try & beginners) == 0)
            state.to_try |= (beginners & set_of(last.process)) != 0 ? set_of(last.process)
                                                                    : set_of(lowest(beginners));
    }

    // Returns the last write, up to `first`, before which a load would not poll in vain: with what
    // it finds there it goes on. -1 if it cannot come before such a one. (A wait for exactly a
    // value may have found it long ago, and others in vain since.)
    int passed_by(const Node& load, int first) {
        if (load.finds_own)
            return first;
        for (int write = first; write >= 0 && load.past[process_of(write)] <= write;) {
            const int before = path_[static_cast<std::size_t>(write)].loads_from;
            // Before its own store has arrived, a stream finds it all the same.
            const bool is_own = execution_.stream_of(process_of(write)) == load.process;
            const int found = is_own ? write : before;
            if (would_go_on(load, found < 0 ? std::nullopt : std::optional(value_of(found))))
                return write;
            write = is_own ? -1 : before;
        }
        return -1;
    }
    std::uint64_t value_of(int write) const {
        return path_[static_cast<std::size_t>(write)].step.value;
    }

    // Returns whether the load `last` ends a wait that only step `first` could have ended: then it
    // cannot come before it.
    static bool has_ended_wait(int first, const Node& last, const std::vector<int>& independent) {
        return !last.woken_by.empty() && last.woken_by.front() == first &&
               std::ranges::none_of(independent, [&](int step) {
                   return std::ranges::count(last.woken_by, step) > 0;
               });
    }

    // Goes back to the last state from which something is left to try, and chooses it. False if
    // there is none.
    bool back_up() {
        for (; !path_.empty(); path_.pop_back()) {
            Node& node = path_.back();
            const ProcessSet left = node.to_try & ~node.tried & ~node.asleep;
            if (left != 0) {
                node.process = lowest(left);
                node.tried |= set_of(node.process);
                return true;
            }
        }
        return false;
    }

    Execution& execution_;
    const ExplorationOptions& options_;
    Exploration result_;
    std::vector<Node> path_;
    std::size_t known_ = 0;  // so many steps of it were taken before, in the same way
    std::size_t begun_ = 0;  // length of the path that this execution began with
    std::map<const std::byte*, Place> places_;
    std::array<int, max_processes> last_of_{};
};

void require_one_thread(const PreparedKernel& kernel) {
    const dim3& block = kernel.shape.block;
    if (std::uint64_t{block.x} * block.y * block.z != 1)
        throw std::runtime_error(KernelRun(kernel, Settings{}).name() +
                                 ": the explorer runs blocks of one thread: unset CUDA_ON_CPU");
}

}  // namespace

Exploration explore(std::span<const cudaStream_t> streams, const ExplorationOptions& options) {
    std::vector<std::vector<Launch>> launches;
    std::vector<std::vector<const PreparedKernel*>> kernels;
    std::uint64_t blocks = 0;  // at a time
    for (const cudaStream_t handle : streams) {
        launches.push_back(take_launches(*find_stream(handle, "explore")));
        kernels.emplace_back();
        std::uint64_t most = 1;
        for (const Launch& launch : launches.back()) {
            require_one_thread(*launch);
            kernels.back().push_back(launch.get());
            most = std::max(most, KernelRun(*launch, Settings{}).blocks());
        }
        blocks += most;
    }
    if (const std::size_t others = forget_launches(); others > 0)
        throw std::runtime_error(std::to_string(others) +
                                 " kernels were launched on streams that are not explored: a case "
                                 "for the explorer uses one stream for each rank");
    if (blocks > max_explored_streams)
        throw std::runtime_error("the explorer follows up to " +
                                 std::to_string(max_explored_streams) +
                                 " streams, or blocks of them");
    const DeviceAccess access;
    Execution execution(std::move(kernels), options);
    return Search(execution, options).run();
}

}  // namespace cuda_on_cpu
