// The exercise ring_shift: values that tell whose they are and where they belong, and time,
// measured over a link so slow that nothing else counts.
#include "exercises/06_messages/ring_shift.hpp"

#include <algorithm>
#include <chrono>

#include "common/report/units.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr float untouched = -5;

float element(int rank, std::size_t i) {
    return static_cast<float>(static_cast<std::size_t>(rank) * 100'000 + i);
}
std::string name_of_element(float value, int ranks) {
    if (value == untouched)
        return "has never arrived, or not before the stream that you were given had done its work.";
    if (!(value >= 0 && value < element(ranks, 0)))
        return "is no element of any rank. Is it bytes where it should be elements?";
    const auto number = static_cast<std::size_t>(value);
    return "is element " + std::to_string(number % 100'000) + " of rank " +
           std::to_string(number / 100'000) + ".";
}

// ---- Task neighbours

void check_shift(Peers& peers, std::size_t count, const std::string& hint) {
    const int rank = peers.rank().rank(), ranks = peers.rank().world_size();
    const int left = (rank + ranks - 1) % ranks;
    std::vector<float> mine(count);
    for (std::size_t i = 0; i < count; i++)
        mine[i] = element(rank, i);
    ArenaBuffer<float> data = peers.allocate<float>(count), received = peers.allocate<float>(count);
    data.copy_from(mine);
    received.copy_from(std::vector<float>(count, untouched));
    Stream stream;
    ring_shift(peers, data.data(), received.data(), count, stream);
    peers.synchronize(stream);
    const std::vector<float> yours = received.to_host_now();
    std::size_t first = 0;
    std::string wrong = wrong_elements(count, rank, first,
                                       [&](std::size_t i) { return yours[i] == element(left, i); });
    if (!wrong.empty())
        wrong = ranks_and_elements(ranks, count) + ": " + wrong +
                name_of_element(yours[first], ranks) + " It should be of rank " +
                std::to_string(left) + ".\n" + hint;
    throw_first_wrong(peers.rank(), wrong);
}

// A rank that waits for ever has a cause that the run names; `hint` says what to make of it.
void check_on(int ranks, const std::string& hint) {
    const auto work = [&](Rank& rank) {
        Peers peers(rank, 1 << 20, 2);  // a wait of more than 2 s is for ever
        for (const std::size_t count : {std::size_t{1}, std::size_t{0}, std::size_t{20'011}})
            check_shift(peers, count, hint);
    };
    on_ranks_with_hint(ranks, work, std::to_string(ranks) + " ranks", hint);
}

void check_neighbours() {
    for (const int ranks : {2, 3, 4, 5})
        check_on(ranks,
                 "If all send first, all wait for ever. Who receives first? And does each "
                 "rank receive from the one that sends to it, its left neighbour?");
    check_on(1, "A single rank has what it should receive.");
}

// ---- Task cost

// Returns the least seconds of several shifts: a machine with other work to do is slower than the
// link, never faster. It makes no more once one has taken `enough`.
double least_seconds(int ranks, std::size_t count, double enough) {
    using Clock = std::chrono::steady_clock;
    double least = 1e9;
    const auto work = [&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        ArenaBuffer<float> data = peers.allocate<float>(count),
                           received = peers.allocate<float>(count);
        data.copy_from(std::vector<float>(count));
        Stream stream;
        for (int i = 0; i < 40; i++) {
            rank.barrier();
            const auto begin = Clock::now();
            ring_shift(peers, data.data(), received.data(), count, stream);
            peers.synchronize(stream);
            rank.barrier();
            if (const std::chrono::duration<double> taken = Clock::now() - begin; rank.rank() == 0)
                least = std::min(least, taken.count());
            if (rank.broadcast(least <= enough ? "enough" : "again", 0) == "enough")
                return;
        }
    };
    on_ranks(ranks, work, LinkSpeed{2e6, 10e-3});
    return least;
}

void check_row() {
    constexpr double message_s = 10e-3, longest_s = 5.2 * message_s;  // a row takes seven and more
    const double seconds = least_seconds(12, 1, longest_s);
    if (seconds > longest_s)
        throw std::runtime_error(
            "12 ranks, one element over a link with a latency of 10 ms: your ring takes " +
            format_seconds(seconds) + ", which is " + format_fixed(seconds / message_s, 1) +
            " messages one after the other.\nWho waits for whom? If only one rank receives first, "
            "or one half of the ring, the others wait for one another in a row." +
            may_be_busy);
}

// A ring that sends on one stream and receives on another takes the time of one message, and is as
// right as one that lets the two follow one another: the prediction must be that of the reader's
// own ring.
void check_cost(int ranks, std::size_t count, int messages, const std::string& hint) {
    const std::size_t bytes = count * sizeof(float);
    const CostModel message{10e-3, 1 / 2e6};
    const double predicted = ring_shift_seconds(message, ranks, bytes);
    const double one = std::min(messages, 1) * message.seconds(bytes);
    const double row = messages * message.seconds(bytes);
    const auto is_predicted = [&](double taken) {
        return std::abs(predicted - taken) <= 0.25 * std::max(taken, 1e-3);
    };
    const double enough = (is_predicted(one) ? 0.75 : 1.25) * row;
    const bool takes_one = least_seconds(ranks, count, enough) <= 0.75 * row;
    if (!is_predicted(takes_one ? one : row))
        throw std::runtime_error(ranks_and_elements(ranks, count) +
                                 ", a link of 2 MB/s with a latency of 10 ms: you predict " +
                                 format_seconds(predicted) + ", and your ring takes " +
                                 format_seconds(takes_one ? one : row) + ".\n" + hint +
                                 (is_predicted(one) ? may_be_busy : ""));
}

void check_costs() {
    check_row();
    check_cost(4, 1, 2, "Half of the ranks send first. How many messages stand in a row?");
    check_cost(2, 10'000, 2, "How many bytes does each message have?");
    check_cost(5, 1, 3, "In an odd ring two neighbours do the same first. What does that cost?");
    check_cost(1, 1, 0, "A single rank sends nothing.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"neighbours", check_neighbours}, {"cost", check_costs}};
}

}  // namespace ddp::test
