// The exercise barrier: ranks as threads, and a store that knows who waits in it. So no clock is
// needed: a rank comes last when all others stand still, and if all do, none will ever go on.
#include "exercises/05_ranks/barrier.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

struct Member {
    int rank, call = 0, sets = 0, gets = 0;  // those of the call
    bool has_ended = false;
    std::string awaited;  // key, while it is in get()
};

class Meeting {
  public:
    // A rank may set and get `most` keys in a call; `if_more` says why that is enough.
    Meeting(int ranks, int most, const std::string& if_more)
        : size_(ranks), most_(most), if_more_(if_more) {
        for (int rank = 0; rank < ranks; rank++)
            members_.push_back({rank});
    }

    // Lets all ranks call wait() so often. In call c, rank last + c comes when all others wait.
    void run(int calls, int last) {
        std::vector<std::jthread> threads;
        for (Member& member : members_)
            threads.emplace_back([&, calls, last] {
                try {
                    call(member, calls, last);
                } catch (...) {
                    const std::lock_guard lock(mutex_);
                    first_ = first_ ? first_ : std::current_exception();
                }
                const std::lock_guard lock(mutex_);
                member.has_ended = true;
                tell_of_change();
            });
        threads.clear();  // joins them
        if (first_)
            std::rethrow_exception(first_);
    }

  private:
    // Returns how many ranks have ended, or wait for a key that is not there.
    std::ptrdiff_t standing() const {
        return std::ranges::count_if(members_, [&](const Member& it) {
            return it.has_ended || (!it.awaited.empty() && !words_.contains(it.awaited));
        });
    }
    // Wakes all. If all stand still, and not at the end, that is the error.
    void tell_of_change() {
        const auto stuck = std::ranges::find(members_, false, &Member::has_ended);
        if (!first_ && standing() == size_ && stuck != members_.end())
            first_ = std::make_exception_ptr(
                Wrong(std::to_string(size_) + " ranks: none can go on. Rank " +
                      std::to_string(stuck->rank) + " waits for \"" + stuck->awaited +
                      "\". Does each rank set its own key before it gets another's? Which rank "
                      "should have set that one, and what did it call it? (After rank N - 1 comes "
                      "0. And a static variable is one for all ranks.)"));
        changed_.notify_all();
    }
    void wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& condition) {
        changed_.wait(lock, [&] { return first_ || condition(); });
        if (first_)
            std::rethrow_exception(first_);
    }
    void count(int& calls) const {
        if (++calls > most_)
            throw Wrong(std::to_string(size_) + " ranks: set() and get() are called " +
                        std::to_string(most_) + " times each at most in a call. " + if_more_);
    }

    void call(Member& me, int calls, int last) {
        const auto set = [&](const std::string& key, const std::string& value) {
            const std::lock_guard lock(mutex_);
            count(me.sets);
            words_[key] = value;
            changed_.notify_all();
        };
        const auto get = [&](const std::string& key) {
            std::unique_lock lock(mutex_);
            count(me.gets);
            me.awaited = key;
            tell_of_change();
            wait_until(lock, [&] { return words_.contains(key); });
            me.awaited.clear();
            return words_[key];
        };
        const auto barrier = make_barrier({set, get}, me.rank, size_);
        for (int call = 1; call <= calls; call++) {
            std::unique_lock lock(mutex_);
            if (me.rank == (last + call) % size_)
                wait_until(lock, [&] { return standing() == size_ - 1; });
            me = {me.rank, call};
            lock.unlock();
            barrier->wait();
            lock.lock();
            for (const Member& other : members_)
                if (other.call < call)
                    throw Wrong(std::to_string(size_) + " ranks, call " + std::to_string(call) +
                                ": rank " + std::to_string(me.rank) + " has returned before rank " +
                                std::to_string(other.rank) + " has come. " +
                                (call == 1 ? "From whom should it hear of that rank?"
                                           : "Does it get a key of an earlier call? What was set "
                                             "stays set: each call needs keys of its own."));
        }
    }

    const int size_, most_;
    const std::string if_more_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Member> members_;
    std::map<std::string, std::string> words_;
    std::exception_ptr first_;
};

void check(bool again, bool counts) {
    // "1" and "10" are not to be "11" and "0".
    for (const auto& [ranks, rounds] : {std::pair{1, 1}, {2, 1}, {3, 2}, {5, 3}, {8, 3}, {11, 4}})
        for (int last = 0; last < (again ? 1 : ranks); last++) {  // again: each is the last
            trying(std::to_string(ranks) + " ranks call wait().");
            Meeting meeting(ranks, counts ? rounds : 1000,
                            counts ? "A rank that you hear from may have heard from others before: "
                                     "its next word tells of all."
                                   : "get() waits until there is a key, and not for a value: what "
                                     "is new belongs into the key.");
            meeting.run(again ? ranks + 2 : 1, last);
        }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"one_call", [] { check(false, false); }},
            {"again", [] { check(true, false); }},
            {"rounds", [] { check(true, true); }}};
}

}  // namespace ddp::test
