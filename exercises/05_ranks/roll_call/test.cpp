// The exercise roll_call. Every rank is a thread, and this test is the wire between rank 0 and each
// of the others: it takes what one end sends and hands it to the other end when it likes, in the
// pieces that it likes, or never. So it knows nothing of the reader's messages.
#include "exercises/05_ranks/roll_call.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
using List = std::vector<std::string>;

constexpr Milliseconds at_once = 3s;  // on a busy machine

std::string name(int rank) {
    return "rank " + std::to_string(rank);
}
std::string text(const List& list) {
    std::string all;
    for (const std::string& address : list)
        all += (all.empty() ? "\"" : ", \"") + address + "\"";
    return "(" + all + ")";
}
std::string text(const std::vector<int>& ranks) {
    std::string all;
    for (const int rank : ranks)
        all += (all.empty() ? "" : ", ") + std::to_string(rank);
    return all;
}

// ---- The wires

// One direction of a wire: what has come from one end and is not yet with the other one.
struct Direction {
    int from, to;  // this test's ends
    int reader;    // the other end of `to`, of which this test sees whether it has been read
    bool is_slow = false;  // byte by byte, each when the one before has been read
    std::string waiting = {};
    std::size_t moved = 0;
};

struct Wire {
    Direction up, down;  // from the rank to rank 0, and from rank 0 to the rank
    bool is_cut = false;

    void cut() {
        for (const int end : {up.from, up.to})
            shutdown(end, SHUT_RDWR);
        is_cut = true;
    }
};

int unread(int descriptor) {
    int bytes = 0;
    ioctl(descriptor, FIONREAD, &bytes);
    return bytes;
}

// Takes in what has come, and hands on what may go. Returns whether anything moved.
bool pump(Direction& way) {
    char bytes[4096];
    const ssize_t count = recv(way.from, bytes, sizeof bytes, MSG_DONTWAIT);
    way.waiting.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    std::size_t most = way.waiting.size();
    if (way.is_slow)
        most = unread(way.reader) > 0 ? 0 : std::min<std::size_t>(most, 1);
    if (most == 0)
        return count > 0;
    const ssize_t sent = send(way.to, way.waiting.data(), most, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0)
        return count > 0;
    way.waiting.erase(0, static_cast<std::size_t>(sent));
    way.moved += static_cast<std::size_t>(sent);
    return true;
}

// ---- A job

// Holds how a rank's call ended: it has returned a list, or named a cause.
struct Outcome {
    std::optional<List> list;
    int cause = -1;
};

// Plays the launcher: it makes the connections, starts ranks, and ends them all. One thread uses
// it.
class Job {
  public:
    explicit Job(List addresses) : addresses_(std::move(addresses)) {
        ends_at_0_.push_back(-1);
        own_ends_.push_back(-1);
        for (std::size_t rank = 1; rank < addresses_.size(); rank++) {
            int own[2], at_0[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, own) != 0 ||
                socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, at_0) != 0)
                throw std::runtime_error("there are no sockets left for the test");
            own_ends_.push_back(own[0]);
            ends_at_0_.push_back(at_0[0]);
            wires_.push_back({{own[1], at_0[1], at_0[0]}, {at_0[1], own[1], own[0]}});
        }
        relay_ = std::thread([this] { relay(); });
    }
    ~Job() {
        is_over_ = true;
        relay_.join();
        for (const Wire& wire : wires_)
            for (const int end : {wire.up.from, wire.up.to})
                close(end);
        for (std::size_t rank = 1; rank < addresses_.size(); rank++) {
            close(own_ends_[rank]);
            close(ends_at_0_[rank]);
        }
    }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    int size() const { return static_cast<int>(addresses_.size()); }
    const List& addresses() const { return addresses_; }
    std::vector<int> all() const {
        std::vector<int> ranks(addresses_.size());
        std::iota(ranks.begin(), ranks.end(), 0);
        return ranks;
    }

    std::vector<int> started() const {
        std::vector<int> ranks;
        for (const auto& [rank, call] : calls_)
            ranks.push_back(rank);
        return ranks;
    }

    void start(int rank) {
        std::vector<int> connections(addresses_.size(), -1);
        if (rank == 0)
            connections = ends_at_0_;
        else
            connections[0] = own_ends_[static_cast<std::size_t>(rank)];
        calls_[rank] =
            std::async(std::launch::async, [this, rank, connections] {
                return take_roll(rank, size(), addresses_[static_cast<std::size_t>(rank)],
                                 connections);
            }).share();
    }
    void start(const std::vector<int>& ranks) {
        for (const int rank : ranks)
            start(rank);
    }

    // Changes the wire of a rank.
    void with_wire(int rank, const std::function<void(Wire&)>& change) {
        const std::lock_guard lock(wires_mutex_);
        change(wires_[static_cast<std::size_t>(rank) - 1]);
    }
    void cut(int rank) {
        with_wire(rank, [](Wire& wire) { wire.cut(); });
    }
    // Waits until the rank has sent something: for 30 ms at most, since rank 0 may have to ask
    // first.
    void wait_until_sends(int rank) {
        const Clock::time_point end = Clock::now() + 30ms;
        for (bool has = false; !has && Clock::now() < end; std::this_thread::sleep_for(200us))
            with_wire(rank, [&](const Wire& wire) {
                has = wire.up.moved > 0 || !wire.up.waiting.empty();
            });
    }
    // Waits until nothing is on its way, and nothing has been for a while.
    void wait_until_quiet() {
        for (int quiet = 0; quiet < 20; std::this_thread::sleep_for(1ms)) {
            const std::lock_guard lock(wires_mutex_);
            quiet++;
            for (const Wire& wire : wires_)
                for (const Direction* way : {&wire.up, &wire.down})
                    if (!way->waiting.empty() || unread(way->from) > 0 || way->moved != seen_[way])
                        quiet = 0, seen_[way] = way->moved;
        }
    }

    // Returns what became of a call that has ended by `end`. Throws Wrong with `hint` if it has
    // not, or if a rank has thrown something else.
    Outcome outcome(int rank, Clock::time_point end, const std::string& hint) {
        const auto call = calls_.at(rank);
        if (call.wait_until(end) != std::future_status::ready) {
            for (const auto& [other, its_call] : calls_)  // which may be why
                if (its_call.wait_for(0s) == std::future_status::ready)
                    outcome(other, end, hint);
            throw Wrong(name(rank) + " still waits after " + std::to_string(at_once.count()) +
                        " ms. " + hint);
        }
        try {
            return {call.get()};
        } catch (const RollFailed& failed) {
            return {std::nullopt, failed.rank};
        } catch (const NotImplemented&) {
            throw;
        } catch (const std::exception& error) {
            throw Wrong(name(rank) + " throws something that is no RollFailed: " + error.what() +
                        ". " + hint);
        }
    }

    // Ends all ranks by ending all connections. `words` are what is said if one does not end.
    void end(const std::string& words) {
        with_all_cut();
        const auto end = Clock::now() + 2s;
        for (const auto& [rank, call] : calls_)
            if (call.wait_until(end) != std::future_status::ready) {
                std::puts(((words.empty() ? "" : words + "\n") + "All connections of " +
                           name(rank) +
                           " have ended, and it still does not return. Does it take note of a "
                           "read() that returns 0?")
                              .c_str());
                std::fflush(stdout);
                std::_Exit(4);
            }
    }

  private:
    void relay() {
        while (!is_over_) {
            bool has_moved = false;
            std::vector<pollfd> ready;
            {
                const std::lock_guard lock(wires_mutex_);
                for (Wire& wire : wires_) {
                    if (wire.is_cut)
                        continue;
                    for (Direction* way : {&wire.up, &wire.down})
                        has_moved = pump(*way) || has_moved;
                    if (wire.up.waiting.empty() && wire.down.waiting.empty())
                        for (const int end : {wire.up.from, wire.up.to})
                            ready.push_back({end, POLLIN, 0});
                }
            }
            if (!has_moved)
                poll(ready.data(), ready.size(), 1);
        }
    }
    void with_all_cut() {
        const std::lock_guard lock(wires_mutex_);
        for (Wire& wire : wires_)
            wire.cut();
    }

    const List addresses_;
    std::vector<int> ends_at_0_, own_ends_;  // what the ranks get
    std::map<int, std::shared_future<List>> calls_;

    std::mutex wires_mutex_;
    std::vector<Wire> wires_;  // of rank r at r - 1
    std::map<const Direction*, std::size_t> seen_;
    std::atomic<bool> is_over_ = false;
    std::thread relay_;
};

// Plays `story` on a job. Whatever comes of it, all ranks have ended when this returns. `what`
// begins the words of what is wrong.
void play(const std::string& what, const List& addresses, const std::function<void(Job&)>& story) {
    Job job(addresses);
    try {
        story(job);
    } catch (const Wrong& wrong) {
        job.end(what + wrong.what());
        throw Wrong(what + wrong.what());
    } catch (...) {
        job.end("");
        throw;
    }
    job.end(what + "the list is right.");
    for (const int rank : job.started())
        job.outcome(rank, Clock::now(), "");
    held();
}

// ---- What is expected

std::string cause_of_list(const List& yours, const List& right) {
    if (yours.size() != right.size())
        return "It has " + std::to_string(yours.size()) + " entries, and not " +
               std::to_string(right.size()) +
               ": one for each rank, and rank 0's own address belongs into it, too.";
    if (std::ranges::is_permutation(yours, right))
        return "All addresses are there, but not in the order of the ranks. Over which connection "
               "has each come?";
    return "";
}

// Expects that all ranks get the list.
void require_list(Job& job, const std::string& hint) {
    const auto end = Clock::now() + at_once;
    for (const int rank : job.all()) {
        const Outcome outcome = job.outcome(rank, end, hint);
        if (!outcome.list)
            throw Wrong("all ranks have come, but " + name(rank) + " throws RollFailed, with " +
                        name(outcome.cause) + " as the cause. " + hint);
        if (*outcome.list != job.addresses())
            throw Wrong(name(rank) + " gets " + text(*outcome.list) + "; right is " +
                        text(job.addresses()) + ". " +
                        cause_of_list(*outcome.list, job.addresses()) + "\n" + hint);
    }
}

// Expects that these ranks name `cause` at once. `hint` is for the first of them.
void require_cause(Job& job, const std::vector<int>& ranks, int cause, const std::string& hint) {
    const auto end = Clock::now() + at_once;
    for (const int rank : ranks) {
        const std::string words =
            rank == 0 || ranks[0] != 0
                ? hint
                : "Rank 0 tells all others the first cause before it throws, and they throw it, "
                  "too.";
        const Outcome outcome = job.outcome(rank, end, words);
        if (outcome.cause != cause)
            throw Wrong(name(rank) +
                        (outcome.list ? " has got a list" : " names " + name(outcome.cause)) +
                        "; the first cause is " + name(cause) + ". " + words);
    }
}

List addresses_of(int ranks) {
    List list;
    for (int rank = 0; rank < ranks; rank++)  // of different lengths
        list.push_back("node" + std::string(static_cast<std::size_t>(3 * rank % 7), '0') +
                       std::to_string(rank) + ":" + std::to_string(29500 + rank));
    return list;
}

// ---- list

void come_in_order(const std::vector<int>& order) {
    const std::string what =
        std::to_string(order.size()) +
        (order.size() == 1 ? " rank: " : " ranks, which come in the order " + text(order) + ": ");
    trying(what + "take_roll() is called.");
    const List addresses = addresses_of(static_cast<int>(order.size()));
    play(what, addresses, [&](Job& job) {
        for (const int rank : order) {
            job.start(rank);
            if (rank != 0)
                job.wait_until_sends(rank);
        }
        require_list(
            job, order.size() == 1
                     ? "The case: a rank alone, which has nobody to wait for."
                     : "Who waits for whom? A rank that reads first needs another one that sends "
                       "first. And one read() may bring more than one message.");
    });
}

void check_list() {
    for (int ranks = 1; ranks <= 4; ranks++) {
        std::vector<int> order(static_cast<std::size_t>(ranks));
        std::iota(order.begin(), order.end(), 0);
        do
            come_in_order(order);
        while (std::ranges::next_permutation(order).found);
    }
    for (const bool is_up : {true, false}) {
        const std::string what = "4 ranks, and what " +
                                 std::string(is_up ? "they send" : "rank 0 sends") +
                                 " arrives byte by byte: ";
        trying(what + "take_roll() is called.");
        play(what, addresses_of(4), [&](Job& job) {
            for (int rank = 1; rank < 4; rank++)
                job.with_wire(rank,
                              [&](Wire& wire) { (is_up ? wire.up : wire.down).is_slow = true; });
            job.start({2, 0, 3, 1});
            require_list(job,
                         "A read() returns what is there, which may be one byte: read on until "
                         "the message is complete.");
        });
    }
}

// ---- gone

void check_gone() {
    const std::string no_wait =
        "This can be known at once: the read() from a rank that is gone returns 0. Watch all "
        "connections at the same time, with one poll().";
    trying("4 ranks, and one of them is gone: take_roll() is called.");
    play("4 ranks. Rank 3 ends before it has come, and rank 1 has yet to come: ", addresses_of(4),
         [&](Job& job) {
             job.start({0, 2});
             job.wait_until_quiet();
             job.cut(3);
             require_cause(job, {0, 2}, 3, no_wait);
             job.start(1);
             require_cause(job, {1}, 3,
                           "The case: it comes later, and should learn the cause, too.");
         });
    play("4 ranks. Rank 2 has come and ends, while rank 1 has yet to come: ", addresses_of(4),
         [&](Job& job) {
             job.start({0, 2, 3});
             job.wait_until_quiet();
             job.cut(2);
             require_cause(job, {0, 3}, 2,
                           no_wait + " A rank that has come may go again, before there is a list.");
         });
    play("3 ranks. Rank 0 ends while they wait: ", addresses_of(3), [&](Job& job) {
        job.start({1, 2});
        job.wait_until_quiet();
        job.cut(1);
        job.cut(2);
        require_cause(job, {1, 2}, 0, "Their connection leads to rank 0.");
    });
}

// ---- A signal that ends a rank which writes to one that is gone

void tell_of_sigpipe(int) {
    constexpr std::string_view words =
        "Your code sends to a rank that is gone. That ends the sender's whole process, by the "
        "signal SIGPIPE, unless it says send(..., MSG_NOSIGNAL): then the send fails, and the "
        "rank goes on.\n";
    [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, words.data(), words.size());
    std::_Exit(4);
}

}  // namespace

std::vector<Task> tasks() {
    std::signal(SIGPIPE, tell_of_sigpipe);
    return {{"list", check_list}, {"gone", check_gone}};
}

}  // namespace ddp::test
