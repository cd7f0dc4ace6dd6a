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
    std::string wrong = wrong_elements(data.size(), rank, first, [&](std::size_t i) {
        return data[i] == (i < count ? of_root(i) : before(rank));
    });
    if (wrong.empty())
        return wrong;
    const float found = data[first];
    wrong += first >= count          ? "lies behind the end of the array."
             : found == before(rank) ? "has never arrived."
             : found < 0             ? "is what another rank had at first: it was read too early."
                                     : "is " + std::to_string(found) + "; of the root it is i + 1.";
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
    std::string wrong = wrong_copies(data.to_host_now(), count, rank);
    if (!wrong.empty())
        wrong = ranks_and_elements(peers.rank().world_size(), count) + ", root " +
                std::to_string(root) + ": " + wrong + "\n" + hint;
    throw_first_wrong(peers.rank(), wrong);
}

void check_on(int ranks, int root, const std::string& hint) {
    const auto work = [&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        const ArenaBuffer<float> before_arrays = move_arrays(peers);
        const auto n = static_cast<std::size_t>(ranks);
        check_copies(peers, 1024 * n, root, hint);
        for (const std::size_t count : {std::size_t{4099}, std::size_t{40'013}})
            check_copies(peers, count, root, "The elements do not divide evenly into chunks.");
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n + 1})
            check_copies(peers, count, root, "Some chunks are empty here.");
    };
    on_ranks_with_hint(ranks, work, std::to_string(ranks) + " ranks, root " + std::to_string(root),
                       hint + words_for_steps);
}

OnFloats from_root(int root) {
    return [root](Peers& peers, float* data, std::size_t count, Stream& stream) {
        scatter_gather_broadcast(peers, data, count, root, stream);
    };
}

// Throws Wrong unless every rank but the root is sent data by the root and by its left neighbour,
// and by no other rank; or if a rank that overwrites its array after the call disturbs another.
void check_how(int ranks, int root) {
    RightTrace right;
    right.root = root;
    right.judge = [ranks, root](int rank, const std::set<int>& posted_by) -> std::string {
        const int left = (rank + ranks - 1) % ranks;
        const std::set<int> senders{root, left};
        if (rank == root || posted_by == senders)
            return "";
        return "rank " + std::to_string(rank) + " was sent data by " + ranks_text(posted_by) +
               ". It should be sent its chunk by the root, and the others by its left neighbour.";
    };
    check_trace(ranks, from_root(root), right,
                std::to_string(ranks) + " ranks, root " + std::to_string(root));
    const auto brings = [root](int rank, std::size_t i) {
        return rank == root ? of_root(i) : before(rank);
    };
    check_overwriting(ranks, from_root(root), brings, of_root);
}

// Returns the seconds of the chunks that the root deals out, and of the ring's steps.
double right_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return 2 * (ranks - 1) * message.seconds(bytes / static_cast<std::size_t>(ranks));
}

void check_root_0() {
    check_on(1, 0, "A single rank has nothing to do.");
    check_on(2, 0,
             "One chunk is dealt; in the one step of the ring rank 1 reads what rank 0 has had all "
             "along.");
    for (const int ranks : {3, 4, 8})
        check_on(ranks, 0,
                 "The ring has N - 1 steps: in each of them a rank reads what its left neighbour "
                 "received in the step before.");
    for (const int ranks : {1, 2, 4})
        check_how(ranks, 0);
    check_enqueues_only(2, from_root(0), 1);
    check_who_writes(3, from_root(0));
}

void check_any_root() {
    check_on(3, 1, "The root is not rank 0.");
    for (const int root : {1, 3, 4})
        check_on(5, root, "The root is not rank 0.");
    check_how(5, 3);
}

void check_cost() {
    const auto check = [](int ranks, std::size_t bytes, const std::string& hint) {
        compare(scatter_gather_seconds, right_seconds, from_root(0), ranks, bytes, hint);
    };
    const std::string latency = "This short a message is all latency: how many in a row?";
    check(2, 4, latency);
    check(3, 4, "Two chunks are dealt, one after the other, and then the ring has two steps.");
    check(8, 4, latency);
    check(1, 4, "A single rank sends nothing.");
    check(2, 100'000, "How many bytes does each message have?");
    check(4, 200'000, "N - 1 chunks are dealt in a row, and then the ring takes N - 1 steps.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"root_0", check_root_0}, {"any_root", check_any_root}, {"cost", check_cost}};
}

}  // namespace ddp::test
