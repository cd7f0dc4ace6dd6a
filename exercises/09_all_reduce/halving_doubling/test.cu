// The exercise halving_doubling: sums that show which rank is missing, who sends to whom, and how
// long it takes, which no other algorithm has alike.
#include "exercises/09_all_reduce/halving_doubling.hpp"

#include "exercises/support/collectives.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr float untouched = -5;  // stands behind the array

using Share = float (*)(int rank, std::size_t i);
float same_everywhere(int rank, std::size_t) {
    return share_that_tells(rank);
}

// Makes one all-reduce, and returns this rank's result.
std::vector<float> all_reduced(Peers& peers, std::size_t count, Share share) {
    std::vector<float> host(count + 1, untouched);
    for (std::size_t i = 0; i < count; i++)
        host[i] = share(peers.rank().rank(), i);
    ArenaBuffer<float> data = peers.allocate<float>(host.size());
    data.copy_from(host);
    peers.rank().barrier();  // no memory is allocated or freed during an operation
    Stream stream;
    halving_doubling_all_reduce(peers, data.data(), count, stream);
    peers.synchronize(stream);
    host = data.to_host_now();
    peers.rank().barrier();
    if (host[count] != untouched)
        throw Wrong(ranks_and_elements(peers.rank().world_size(), count) +
                    ": you write behind the end of the array. Bytes where it should be elements?");
    host.resize(count);
    return host;
}

void check_sums(Peers& peers, std::size_t count, const std::string& hint) {
    const int ranks = peers.rank().world_size(), rank = peers.rank().rank();
    for (const bool tells_ranks : {true, false}) {
        if (tells_ranks && !is_first_order())  // a rank that is missing is so in every order
            continue;
        const std::vector<float> sums =
            all_reduced(peers, count, tells_ranks ? same_everywhere : share_of_place);
        const std::string wrong =
            tells_ranks ? wrong_shares(sums, ranks, rank) : wrong_places(sums, ranks, rank);
        throw_first_wrong(peers.rank(), wrong.empty()
                                            ? ""
                                            : ranks_and_elements(ranks, count) + ": " + wrong +
                                                  outside_words(sums) + "\n" + hint);
    }
}

void check_on(int ranks, const std::string& hint) {
    const auto work = [&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        const ArenaBuffer<float> before_arrays = move_arrays(peers);
        const auto n = static_cast<std::size_t>(ranks);
        check_sums(peers, 64 * n, hint);
        const std::size_t large = is_first_order() ? 40'013 : 4003;
        for (const std::size_t count :
             {64 * n, std::size_t{1009}, large, std::size_t{0}, std::size_t{1}, n - 1, n, n + 1})
            check_sums(peers, count,
                       hint + (count % n == 0 ? ""
                                              : " The elements do not divide evenly: the two ranks "
                                                "of a pair must agree on the middle of an odd "
                                                "number, and some ranges may be empty."));
    };
    on_ranks_with_hint(ranks, work, std::to_string(ranks) + " ranks", hint + words_for_steps);
}

// Every rank overwrites its array as soon as its call is done.
void check_who_leaves(int ranks) {
    check_overwriting(ranks, halving_doubling_all_reduce, share_of_place, [ranks](std::size_t i) {
        float sum = 0;
        for (int rank = 0; rank < ranks; rank++)
            sum += share_of_place(rank, i);
        return sum;
    });
}

// ---- Which algorithm it is

// Returns the seconds that halving and doubling takes, in halves of `bytes`.
double right_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    double seconds = 0;
    for (int distance = 1; distance < ranks; distance *= 2)
        seconds += 2 * message.seconds(bytes / static_cast<std::size_t>(2 * distance));
    return seconds;
}

// Throws Wrong unless every rank is sent data by its partners, and by no other rank.
void check_partners(int ranks) {
    RightTrace right;
    right.judge = [ranks](int rank, const std::set<int>& posted_by) -> std::string {
        std::set<int> partners;
        for (int distance = 1; distance < ranks; distance *= 2)
            partners.insert(rank ^ distance);
        if (posted_by == partners)
            return "";
        return "rank " + std::to_string(rank) + " was sent data by " + ranks_text(posted_by) +
               ". Its partners are " + ranks_text(partners) +
               ". (Another algorithm, such as the ring or two-shot, has the same sums.)";
    };
    check_trace(ranks, halving_doubling_all_reduce, right, std::to_string(ranks) + " ranks");
}

void check_algorithm_time(int ranks, std::size_t bytes) {
    check_time("halving and doubling", right_seconds, halving_doubling_all_reduce, ranks, bytes,
               "Each rank exchanges data with one partner at a time, and the ranges become half as "
               "long each time, then twice as long. (Does another all-reduce do the work?)");
}

void check_powers_of_two() {
    check_on(1, "The case: a single rank, which has nothing to do.");
    check_on(2, "Two ranks exchange data once to sum and once to copy.");
    const std::string more = "Of more than two ranks each has another partner in every step.";
    check_on(4, more);
    check_on(8, more);
    for (const int ranks : {4, 8})
        check_partners(ranks);
    check_algorithm_time(8, 4);
    check_algorithm_time(4, 200'000);
    for (const int ranks : {4, 8})
        check_who_leaves(ranks);
    check_enqueues_only(2, halving_doubling_all_reduce, 3);
    check_who_writes(4, halving_doubling_all_reduce);
}

void check_any_ranks() {
    for (const int ranks : {3, 5, 6, 7})
        check_on(ranks,
                 "The largest power of two below the number of ranks can work in pairs; the others "
                 "must send their data first, and receive the sum at the end.");
    for (const int ranks : {3, 6})
        check_who_leaves(ranks);
    check_who_writes(3, halving_doubling_all_reduce);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"powers_of_two", check_powers_of_two}, {"any_ranks", check_any_ranks}};
}

}  // namespace ddp::test
