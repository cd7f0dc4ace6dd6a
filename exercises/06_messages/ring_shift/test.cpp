// The exercise ring_shift: values that tell whose they are and where they belong, rings of every
// kind, and time, measured over a link so slow that nothing else counts.
#include "exercises/06_messages/ring_shift.hpp"

#include <algorithm>
#include <chrono>

#include "common/report/units.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr double wait_s = 2;  // of one rank for another: longer is for ever
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

std::string ranks_text(int ranks) {
    return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}
int source_of(int rank, int ranks, int distance) {
    return ((rank - distance % ranks) % ranks + ranks) % ranks;
}

std::string wrong_elements_of(const std::vector<float>& values, int source, int rank, int ranks) {
    std::size_t first = 0;
    const std::string wrong = wrong_elements(
        values.size(), rank, first, [&](std::size_t i) { return values[i] == element(source, i); });
    return wrong.empty() ? ""
                         : wrong + name_of_element(values[first], ranks) +
                               " It should be of rank " + std::to_string(source) + ".";
}

void check_shift(Peers& peers, std::size_t count, int distance, const std::string& what) {
    const int rank = peers.rank().rank(), ranks = peers.rank().world_size();
    std::vector<float> mine(count);
    for (std::size_t i = 0; i < count; i++)
        mine[i] = element(rank, i);
    ArenaBuffer<float> data = peers.allocate<float>(count), received = peers.allocate<float>(count);
    data.copy_from(mine);
    received.copy_from(std::vector<float>(count, untouched));
    Stream stream;
    ring_shift(peers, data.data(), received.data(), count, distance, stream);
    peers.synchronize(stream);
    const std::string wrong =
        wrong_elements_of(received.to_host_now(), source_of(rank, ranks, distance), rank, ranks);
    throw_first_wrong(peers.rank(), wrong.empty() ? "" : what + ": " + wrong);
}

// A rank that waits for ever has a cause that the run names; `hint` says what to make of it.
void check_on(int ranks, int distance, const std::string& hint) {
    const std::string what = ranks_text(ranks) + ", distance " + std::to_string(distance);
    try {
        on_ranks(ranks, [&](Rank& rank) {
            Peers peers(rank, 1 << 20, wait_s);
            for (const std::size_t count : {std::size_t{1}, std::size_t{0}, std::size_t{20'011}})
                check_shift(peers, count, distance,
                            what + ", " + std::to_string(count) + " of each");
        });
    } catch (const RunFailed& failure) {
        throw std::runtime_error(what + ": " + failure.what() + ".\n" + hint);
    } catch (const Wrong& wrong) {
        throw Wrong(wrong.what() + ("\n" + hint));
    }
}

// ---- How it is done

double seconds_of_shift(Peers& peers, std::size_t count, int distance) {
    using Clock = std::chrono::steady_clock;
    ArenaBuffer<float> data = peers.allocate<float>(count), received = peers.allocate<float>(count);
    data.copy_from(std::vector<float>(count));
    Stream stream;
    peers.rank().barrier();
    const auto begin = Clock::now();
    ring_shift(peers, data.data(), received.data(), count, distance, stream);
    peers.synchronize(stream);
    peers.rank().barrier();
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The least of several: a machine with other work to do is slower than the link, never faster.
// Fewer are enough once it is as fast as `enough` says.
double least_seconds(int ranks, int distance, std::size_t count,
                     const std::function<bool(double)>& enough) {
    double least = 0;
    const auto work = [&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        for (int i = 0; i < 40; i++) {
            const double seconds = seconds_of_shift(peers, count, distance);
            if (rank.rank() == 0)
                least = i == 0 ? seconds : std::min(least, seconds);
            if (rank.broadcast(enough(least) ? "enough" : "again", 0) == "enough")
                return;
        }
    };
    on_ranks(ranks, work, LinkSpeed{2e6, 10e-3});
    return least;
}

void check_row(int ranks, int distance, const std::string& hint) {
    constexpr double message_s = 10e-3, longest_s = 5.2 * message_s;  // a row takes seven and more
    const auto is_short = [](double seconds) { return seconds <= longest_s; };
    const double seconds = least_seconds(ranks, distance, 1, is_short);
    if (!is_short(seconds))
        throw std::runtime_error(
            std::to_string(ranks) + " ranks, distance " + std::to_string(distance) +
            ", one element over a link with a latency of 10 ms: your ring takes " +
            format_seconds(seconds) + ", which is " + format_fixed(seconds / message_s, 1) +
            " messages one after the other.\nWho waits for whom? " + hint + may_be_busy);
}

void check_neighbours() {
    for (const int ranks : {2, 3, 4, 5})
        check_on(ranks, 1,
                 "If all send first, all wait for ever. Who receives first? And does each rank "
                 "receive from the one that sends to it, its left neighbour?");
    check_on(1, 1, "The case: a single rank, which has what it should receive.");
}

// A ring that sends on one stream and receives on another takes the time of one message, and is as
// right as one that lets the two follow one another: the prediction must be that of the reader's
// own ring.
void check_cost(int ranks, std::size_t count, const std::string& hint) {
    const std::size_t bytes = count * sizeof(float);
    const CostModel message{10e-3, 1 / 2e6};
    const double predicted = ring_shift_seconds(message, ranks, bytes);
    const int messages = ranks == 1 ? 0 : ranks % 2 == 0 ? 2 : 3;
    const double one = messages == 0 ? 0 : message.seconds(bytes), row = messages * one;
    const auto is_predicted = [&](double taken) {
        return std::abs(predicted - taken) <= 0.25 * std::max(taken, 1e-3);
    };
    // A machine with other work to do is slower than the link at times, never faster: less than the
    // messages of a row take is one message.
    const double measured = least_seconds(ranks, 1, count, [&](double seconds) {
        return seconds <= (is_predicted(one) ? 0.75 : 1.25) * row;
    });
    const bool takes_one = measured <= 0.75 * row;
    if (is_predicted(takes_one ? one : row))
        return held();
    // Too long a time says more of the machine than of the ring, whose time was checked before.
    throw std::runtime_error(ranks_text(ranks) + ", " + std::to_string(bytes) +
                             " bytes, a link of 2 MB/s with a latency of 10 ms: you predict " +
                             format_seconds(predicted) + ", and your ring takes " +
                             format_seconds(takes_one ? one : row) + ".\n" + hint +
                             (is_predicted(one) ? may_be_busy : ""));
}

void check_costs() {
    check_row(12, 1,
              "If only one rank receives first, or one half of the ring, the others wait for one "
              "another in a row.");
    check_cost(4, 1, "Half of the ranks send first. How many messages stand in a row?");
    check_cost(2, 10'000, "How many bytes does each message have?");
    check_cost(5, 1,
               "An odd number of ranks: two neighbours do the same first. What does that cost?");
    check_cost(1, 1, "The case: a single rank, which sends nothing.");
}

void check_any_distance() {
    check_on(5, 2, "The case: rank 0 sends to rank 2, and receives from rank 3.");
    for (const int distance : {-1, 7, -8})
        check_on(3, distance, "The numbers of the ranks wrap around, in both directions.");
    for (const int distance : {0, 3, -6})
        check_on(3, distance, "The case: every rank is its own neighbour, and keeps what it has.");
    check_on(4, 2,
             "Ranks of the same parity talk to each other here: 0 with 2, and 1 with 3. Even and "
             "odd do not say who receives first.");
    check_on(6, 4,
             "Ranks of the same parity talk to each other here, in two rings: 0, 4, 2 and 1, 5, 3. "
             "Even and odd do not say who receives first.");
    check_row(7, -1,
              "The ring is 0, 6, 5, ..., 1 here: a step of -1 is one of 6, and a rule by rank / "
              "step has six of seven ranks send first. Those that send first and those that "
              "receive first alternate ALONG THE RING.");
    check_row(
        11, 2,
        "The ring is 0, 2, 4, ..., 10, 1, 3, ... here: neighbours in it are both even or both "
        "odd. Those that send first and those that receive first alternate ALONG THE RING.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"neighbours", check_neighbours},
            {"cost", check_costs},
            {"any_distance", check_any_distance}};
}

}  // namespace ddp::test
