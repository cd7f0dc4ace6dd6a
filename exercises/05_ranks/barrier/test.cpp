// The exercise barrier: ranks as threads, and a store that knows who waits in it. So no clock is
// needed: a rank comes last when all others stand still, and if all do, none will ever go on.
#include "exercises/05_ranks/barrier.hpp"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

class Meeting {
  public:
    Meeting(int ranks, bool counts) : counts_(counts), ranks_(static_cast<std::size_t>(ranks)) {}

    // Lets all ranks call wait() so often. In call c, rank last + c comes when all others wait.
    void run(int calls, int last) {
        std::vector<std::thread> threads;
        for (int rank = 0; rank < size(); rank++)
            threads.emplace_back([=, this] {
                try {
                    call(rank, calls, last);
                } catch (const Over&) {
                } catch (...) {
                    const std::lock_guard lock(mutex_);
                    first_ = first_ ? first_ : std::current_exception();
                }
                const std::lock_guard lock(mutex_);
                of(rank).has_ended = true;
                tell_of_change();
            });
        for (std::thread& thread : threads)
            thread.join();
        if (first_)
            std::rethrow_exception(first_);
        held();
    }

  private:
    struct Over {};  // ends the ranks that wait when another one was wrong
    struct Word {
        std::string value;
        int rank, call;       // that have set it
        std::set<int> heard;  // of whom that rank could know then
    };
    struct State {
        int call = 0, sets = 0, gets = 0;  // those of the call
        bool has_ended = false;
        std::string awaited;   // key, while it is in get()
        std::set<int> heard;   // the ranks of which it can know that they are in this call
        std::string old_word;  // says which one it has got that is of an earlier call
    };

    int size() const { return static_cast<int>(ranks_.size()); }
    State& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    // Returns how many ranks have ended, or wait for a key that is not there.
    int standing() const {
        return static_cast<int>(std::ranges::count_if(ranks_, [&](const State& state) {
            return state.has_ended || (!state.awaited.empty() && !words_.contains(state.awaited));
        }));
    }
    // Wakes all. If all stand still, and not at the end, that is the error.
    void tell_of_change() {
        if (!first_ && standing() == size() && !std::ranges::all_of(ranks_, &State::has_ended))
            first_ = std::make_exception_ptr(Wrong(nobody_goes_on()));
        changed_.notify_all();
    }

    void call(int rank, int calls, int last) {
        const Store store{
            [=, this](const std::string& key, const std::string& text) { set(rank, key, text); },
            [=, this](const std::string& key) { return get(rank, key); }};
        const auto barrier = make_barrier(store, rank, size());
        for (int call = 1; call <= calls; call++) {
            std::unique_lock lock(mutex_);
            if (rank == (last + call) % size())
                wait_until(lock, [&] { return standing() == size() - 1; });
            of(rank) = State();
            of(rank).call = call;
            of(rank).heard = {rank};
            lock.unlock();
            barrier->wait();
            lock.lock();
            check_return(rank);
        }
    }
    void set(int rank, const std::string& key, const std::string& value) {
        const std::lock_guard lock(mutex_);
        of(rank).sets++;
        words_[key] = {value, rank, of(rank).call, of(rank).heard};
        changed_.notify_all();
    }
    std::string get(int rank, const std::string& key) {
        std::unique_lock lock(mutex_);
        State& state = of(rank);
        if (++state.gets > 1000)
            throw Wrong(where(rank) + "it has got a thousand words, \"" + key +
                        "\" at last. get() waits until there is a key, and not for a value: what "
                        "must be new in each call belongs into the key.");
        state.awaited = key;
        tell_of_change();
        wait_until(lock, [&] { return words_.contains(key); });
        state.awaited.clear();
        const Word& word = words_[key];
        if (word.call < state.call)
            state.old_word = "\"" + key + "\", which rank " + std::to_string(word.rank) +
                             " had set in call " + std::to_string(word.call);
        else
            state.heard.insert(word.heard.begin(), word.heard.end());
        return word.value;
    }
    template <class Condition>
    void wait_until(std::unique_lock<std::mutex>& lock, const Condition& condition) {
        changed_.wait(lock, [&] { return first_ || condition(); });
        if (first_)
            throw Over();
    }

    void check_return(int rank) {
        const State& state = of(rank);
        for (int other = 0; other < size(); other++)
            if (of(other).call < state.call)
                throw Wrong(where(rank) + "it has returned before rank " + std::to_string(other) +
                            " has come. " + cause_of_early(state));
        const int enough = static_cast<int>(std::bit_width(ranks_.size() - 1));
        if (counts_ && size() > 1 && std::max(state.sets, state.gets) > enough)
            throw Wrong(where(rank) + "calls of set(): " + std::to_string(state.sets) +
                        ", of get(): " + std::to_string(state.gets) + "; " +
                        std::to_string(enough) +
                        " of each would do. A rank that you have heard from may have heard from "
                        "others before: then its next word tells of all of them.");
    }
    std::string cause_of_early(const State& state) const {
        if (!state.old_word.empty())
            return "It got " + state.old_word +
                   ": what was set stays set. In each call, a word must have a key of its own.";
        std::string heard;
        for (const int rank : state.heard)
            heard += (heard.empty() ? "" : ", ") + std::to_string(rank);
        return "From what it had got, it could know that these had come: " + heard +
               ". From whom should it hear of the others?";
    }
    std::string nobody_goes_on() const {
        std::string all =
            std::to_string(size()) + (size() == 1 ? " rank" : " ranks") + ": none can go on.";
        for (std::size_t rank = 0; rank < ranks_.size(); rank++)
            if (!ranks_[rank].has_ended)
                all += " Rank " + std::to_string(rank) + " waits for \"" + ranks_[rank].awaited +
                       "\".";
        return all +
               " Nobody has set these keys. Does each rank set its own before it gets "
               "another's? Which rank should have set the first of them, and what did it "
               "call it? (Numbers of ranks are counted round: after N - 1 comes 0. And a static "
               "variable is one for all ranks here.)";
    }
    std::string where(int rank) {
        return std::to_string(size()) + " ranks, call " + std::to_string(of(rank).call) +
               " of rank " + std::to_string(rank) + ": ";
    }

    const bool counts_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<State> ranks_;
    std::map<std::string, Word> words_;
    std::exception_ptr first_;
};

void check(bool again, bool counts) {
    for (const int ranks : {1, 2, 3, 5, 8})
        for (int last = 0; last < ranks; last++) {
            trying(std::to_string(ranks) + " ranks call wait().");
            Meeting(ranks, counts).run(again ? ranks + 2 : 1, last);
        }
    if (again)  // "1" and "10" are not to be "11" and "0"
        Meeting(11, counts).run(11, 0);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"one_call", [] { check(false, false); }},
            {"again", [] { check(true, false); }},
            {"rounds", [] { check(true, true); }}};
}

}  // namespace ddp::test
