// The exercise scatter_gather: values that show their rank and place, every root, sizes that do not
// divide; who sends to whom; and the reader's own prediction compared with the reader's own run.
#include "exercises/07_broadcast/scatter_gather.hpp"

#include "exercises/support/collectives.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr std::size_t behind = 8;  // elements that no rank may touch

float of_root(std::size_t i) {
    return static_cast<float>(i + 1);
}
float before(int rank) {
    return static_cast<float>(-1 - rank);
}

// Returns what is wrong with the array of rank `rank`, or "".
std::string wrong_copies(const std::vector<float>& data, std::size_t count, int rank) {
    std::size_t first = 0;
    const auto is_right = [&](std::size_t i) { return data[i] == of_root(i); };
    std::string wrong = wrong_elements(count, rank, first, is_right);
    if (wrong.empty())
        return wrong;
    const float found = data[first];
    if (found == before(rank))
        wrong += "has never arrived.";
    else if (found < 0)
        wrong += "is what another rank had at first: it was read there too early.";
    else if (found > static_cast<float>(count))
        wrong += "is no element of any rank.";
    else
        wrong += "is the root's element " + std::to_string(static_cast<long long>(found) - 1) + ".";
    if (first > 0 && first == count / sizeof(float))
        wrong += " A quarter is right: is it elements where it should be bytes?";
    return wrong + outside_words(data);
}

void check_copies(Peers& peers, std::size_t count, int root, const std::string& hint) {
    const int rank = peers.rank().rank();
    std::vector<float> host(count + behind, before(rank));
    if (rank == root)
        for (std::size_t i = 0; i < count; i++)
            host[i] = of_root(i);
    ArenaBuffer<float> data = peers.allocate<float>(host.size());
    data.copy_from(host);
    peers.rank().barrier();  // no memory is allocated or freed during an operation
    Stream stream;
    scatter_gather_broadcast(peers, data.data(), count, root, stream);
    peers.synchronize(stream);
    host = data.to_host_now();
    std::string wrong = wrong_copies(host, count, rank);
    if (std::any_of(host.end() - behind, host.end(), [&](float x) { return x != before(rank); }))
        wrong = "on rank " + std::to_string(rank) +
                " you have written behind the end of the array. Is it bytes where it should be "
                "elements?";
    throw_first_wrong(peers.rank(), wrong.empty()
                                        ? ""
                                        : ranks_and_elements(peers.rank().world_size(), count) +
                                              ", root " + std::to_string(root) + ": " + wrong +
                                              "\n" + hint);
}

void check_on(int ranks, int root, const std::string& hint) {
    const auto work = [&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        const ArenaBuffer<float> before_arrays = move_arrays(peers);
        const auto n = static_cast<std::size_t>(ranks);
        check_copies(peers, 1024 * n, root, hint);
        for (const std::size_t count : {std::size_t{4099}, std::size_t{40'013}})
            check_copies(peers, count, root,
                         hint + "\nThe case: the elements do not divide evenly into chunks.");
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n + 1})
            check_copies(peers, count, root,
                         hint + "\nThe case: so few elements that some chunks are empty.");
    };
    on_ranks_with_hint(ranks, work, std::to_string(ranks) + " ranks, root " + std::to_string(root),
                       hint + words_for_steps);
}

OnFloats from_root(int root) {
    return [root](Peers& peers, float* data, std::size_t count, Stream& stream) {
        scatter_gather_broadcast(peers, data, count, root, stream);
    };
}

// Every rank overwrites its array as soon as its call is done.
void check_who_leaves(int ranks, int root) {
    check_overwriting(
        ranks, from_root(root),
        [root](int rank, std::size_t i) { return rank == root ? of_root(i) : before(rank); },
        of_root);
}

// ---- Which algorithm it is

// Throws Wrong unless every rank but the root is sent data by the root and by its left neighbour,
// and by no other rank.
void check_senders(int ranks, int root) {
    RightTrace right;
    right.root = root;
    right.judge = [ranks, root](int rank, const std::set<int>& posted_by) -> std::string {
        const int left = (rank + ranks - 1) % ranks;
        const std::set<int> senders{root, left};
        if (rank == root || posted_by == senders)
            return "";
        return "rank " + std::to_string(rank) + " was sent data by " + ranks_text(posted_by) +
               ". It should be sent its chunk by the root, and the other chunks by its left "
               "neighbour: by " +
               ranks_text(senders) + ". (Another broadcast brings the same elements.)";
    };
    check_trace(ranks, from_root(root), right,
                std::to_string(ranks) + " ranks, root " + std::to_string(root));
}

// Returns the seconds of the chunks that the root deals out, and of the ring's steps.
double right_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return 2 * (ranks - 1) * message.seconds(bytes / static_cast<std::size_t>(ranks));
}

void check_root_0() {
    check_on(1, 0, "The case: a single rank, which has nothing to do.");
    check_on(
        2, 0,
        "Two ranks: one chunk is dealt; in the one step of the ring rank 1 reads what rank 0 has "
        "had all along.");
    for (const int ranks : {3, 4, 8})
        check_on(ranks, 0,
                 "A chunk that has been dealt goes on round the ring, N - 1 steps in all: in each "
                 "of them a rank reads what its left neighbour received in the step before.");
    for (const int ranks : {1, 2, 4})
        check_senders(ranks, 0);
    for (const int ranks : {2, 4})
        check_who_leaves(ranks, 0);
    check_enqueues_only(2, from_root(0), 1);
    check_who_writes(3, from_root(0));
}

void check_any_root() {
    for (const int root : {1, 2})
        check_on(3, root, "The case: the root is not rank 0.");
    for (const int root : {1, 3, 4})
        check_on(5, root, "The case: the root is not rank 0.");
    check_senders(5, 3);
    check_who_leaves(5, 3);
}

void check_cost() {
    const auto check = [](int ranks, std::size_t bytes, const std::string& hint) {
        compare(scatter_gather_seconds, right_seconds, from_root(0), ranks, bytes, hint);
    };
    check(2, 4, "This short a message is all latency: how many messages go one after the other?");
    check(
        3, 4,
        "Three ranks: two chunks are dealt, one after the other, and then the ring has two steps.");
    check(8, 4, "This short a message is all latency: how many messages go one after the other?");
    check(1, 4, "The case: a single rank, which sends nothing.");
    check(2, 100'000, "How many bytes does each message have?");
    check(4, 200'000,
          "The root deals out N - 1 chunks, one after the other; then the ring takes N - 1 steps. "
          "(Or does the broadcast move too much?)");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"root_0", check_root_0}, {"any_root", check_any_root}, {"cost", check_cost}};
}

}  // namespace ddp::test
