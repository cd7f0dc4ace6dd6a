// The exercise tree_by_hand: elements that tell whose they are, and time over a link so slow that
// nothing else counts.
#include "exercises/07_broadcast/tree_by_hand.hpp"

#include <bit>
#include <chrono>
#include <cmath>

#include "common/report/units.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr double wait_s = 2;       // of one rank for another: longer is for ever
constexpr std::size_t behind = 8;  // elements that no rank may touch

float element(int rank, std::size_t i) {
    return static_cast<float>(static_cast<std::size_t>(rank) * 100'000 + i);
}
std::string name(int rank) {
    return "rank " + std::to_string(rank);
}

// Returns what is wrong with what a rank has after the call, or "".
std::string wrong_values(const std::vector<float>& values, std::size_t count, int rank, int root) {
    std::size_t first = 0;
    const std::string wrong = wrong_elements(
        count, rank, first, [&](std::size_t i) { return values[i] == element(root, i); });
    for (std::size_t i = count; i < values.size(); i++)
        if (values[i] != element(rank, i))
            return name(rank) + " has received more than `count` elements.";
    if (wrong.empty())
        return "";
    const int whose = static_cast<int>(values[first]) / 100'000;
    const std::string from = wrong + "is what " + name(whose) + " had before the call. ";
    if (whose != root && whose == 0)
        return from + "The root is " + name(root) + ": count the ranks from there on, and round.";
    if (whose == rank)
        return wrong +
               "is its own, as before the call: nothing has arrived. Which rank should "
               "send to it, and does it receive?";
    return from + "So " + name(whose) +
           " passes on what has not come yet. A rank's calls are done "
           "in their order: first it receives, then it sends.";
}

void check_values(Peers& peers, std::size_t count, int root, const std::string& what) {
    const int rank = peers.rank().rank();
    ArenaBuffer<float> data = peers.allocate<float>(count + behind);
    std::vector<float> values(count + behind);
    for (std::size_t i = 0; i < values.size(); i++)
        values[i] = element(rank, i);
    data.copy_from(values);
    Stream stream;
    broadcast_by_tree(peers, data.data(), count, root, stream);
    peers.synchronize(stream);
    const std::string wrong = wrong_values(data.to_host_now(), count, rank, root);
    throw_first_wrong(peers.rank(), wrong.empty() ? "" : what + ": " + wrong);
}

void check_on(int ranks, int root, const std::string& hint) {
    const std::string what = std::to_string(ranks) +
                             (ranks == 1 ? " rank, root " : " ranks, root ") + std::to_string(root);
    trying(what + ": broadcast_by_tree() is called.");
    const auto work = [&](Rank& rank) {
        Peers peers(rank, 1 << 20, wait_s);
        for (const std::size_t count : {std::size_t{1}, std::size_t{0}, std::size_t{20'011}})
            check_values(peers, count, root, what);
    };
    on_ranks_with_hint(
        ranks, work, what,
        hint +
            "Each send needs a receive on the other rank, and each receive a send. Draw who "
            "sends to whom. No rank sends beyond the last one, also where there is only one.");
}

void check_arrives() {
    for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 1})
        check_on(ranks, 0, "");
}

// Returns how many messages follow one another, by the least of several times: a machine with other
// work to do is slower than the link, never faster.
double messages_in_a_row(int ranks, int root, double enough) {
    constexpr double latency_s = 30e-3;
    double least = 1e9;
    const auto work = [&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        ArenaBuffer<float> data = peers.allocate<float>(1);
        data.copy_from(std::vector<float>(1));
        for (int i = 0; i < 10; i++) {
            Stream stream;
            rank.barrier();
            const auto begin = std::chrono::steady_clock::now();
            broadcast_by_tree(peers, data.data(), 1, root, stream);
            peers.synchronize(stream);
            const double taken = rank.max_over_ranks(
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
            if (rank.rank() == 0)
                least = std::min(least, taken / latency_s);
            if (rank.broadcast(least <= enough ? "enough" : "again", 0) == "enough")
                return;
        }
    };
    on_ranks(ranks, work, LinkSpeed{1e9, latency_s});
    return least;
}

void check_messages(int ranks, int root) {
    const int right = std::bit_width(static_cast<unsigned int>(ranks - 1));
    const double yours = messages_in_a_row(ranks, root, right + 0.5);
    if (yours > right + 0.5)
        throw std::runtime_error(
            std::to_string(ranks) + " ranks, root " + std::to_string(root) +
            ": your broadcast takes " + format_fixed(yours, 1) +
            " messages' time, and a tree takes " + std::to_string(right) +
            ".\nIf one rank sends to all, or each to the next, that is N - 1. But whoever has the "
            "data can pass it on as long as there are others without: with each message's time "
            "twice as many ranks have it. Who has farthest to go goes first." +
            (yours - std::floor(yours) > 0.3 ? may_be_busy
                                             : ""));  // or it is a whole number of them
}

void check_tree() {
    for (const int ranks : {4, 6, 8})
        check_messages(ranks, 0);
}

void check_from_anywhere() {
    for (const int ranks : {2, 3, 6, 8, 1})
        for (const int root : {ranks - 1, ranks / 2})
            check_on(ranks, root,
                     "The root is not rank 0: count the ranks from the root on, and round. ");
    check_messages(6, 2);
}

}  // namespace

std::vector<Task> tasks() {
    return {
        {"arrives", check_arrives}, {"tree", check_tree}, {"from_anywhere", check_from_anywhere}};
}

}  // namespace ddp::test
