#include "exercises/support/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "common/report/units.hpp"
#include "exercises/not_implemented.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

// The limit of every wait of a kernel or a rank.
constexpr double timeout_s = 4;

// Says which ranks are in a sum, and how often, by its octal digits.
std::string ranks_in(double sum, int ranks) {
    std::string text;
    if (!(std::abs(sum) < 1e15))
        return "is no sum of what the ranks have, but a very large number or none.";
    auto rest = static_cast<long long>(sum);
    if (static_cast<double>(rest) != sum || rest < 0 || rest >> (3 * ranks) != 0)
        return "is no sum of what the ranks have: it is " + format_fixed(sum, 1) + ".";
    for (int r = 0; r < ranks; r++, rest /= 8)
        if (rest % 8 != 1)
            text += (text.empty() ? "" : "; ") + std::string("rank ") + std::to_string(r) +
                    (rest % 8 == 0 ? " is missing in it"
                                   : " is in it " + std::to_string(rest % 8) + " times");
    return "is not the sum of all ranks: " + text + ".";
}

// Returns what to make of a wait that took too long. Like the cause, it has no full stop at its
// end.
std::string words_for_waits(const std::string& cause) {
    if (cause.find("waited") == std::string::npos)
        return "";
    return ".\nSuch a wait is long enough on a machine that has nothing else to do. So a rank "
           "waits for something that never comes, your code does not end, or this machine is busy";
}

}  // namespace

void on_ranks(int ranks, const std::function<void(Rank&)>& work, std::optional<LinkSpeed> link) {
    CommonOptions options;
    options.ranks = ranks;
    options.timeout_s = timeout_s;
    options.link = link;
    World world(options);
    std::mutex mutex;
    std::exception_ptr first;
    const auto remember = [&] {
        const std::lock_guard lock(mutex);
        first = first ? first : std::current_exception();
    };
    try {
        world.run([&](Rank& rank) {
            try {
                work(rank);
            } catch (const Wrong&) {
                remember();
                throw;
            } catch (const NotImplemented&) {
                remember();
                throw;
            }
        });
    } catch (const RunFailed& failure) {
        if (first)
            std::rethrow_exception(first);
        throw RunFailed(failure.what() + words_for_waits(failure.what()), false);
    }
}

void on_ranks_with_hint(int ranks, const std::function<void(Rank&)>& work, const std::string& what,
                        const std::string& hint) {
    try {
        on_ranks(ranks, work);
    } catch (const RunFailed& failure) {
        throw RunFailed(what + ": " + failure.what() + ".\n" + hint, false);
    }
}

void throw_first_wrong(Rank& rank, const std::string& wrong, bool names_cause) {
    const std::string of_check = "the check's own words: ", explained = of_check + "explained: ";
    const std::vector<std::string> all =
        rank.all_gather((names_cause ? explained : of_check) + wrong);
    for (std::size_t r = 0; r < all.size(); r++)
        if (!all[r].starts_with(of_check))
            throw Wrong("Rank " + std::to_string(r) + " exchanges more than rank " +
                        std::to_string(rank.rank()) +
                        ", whose call has ended: what it sends to all comes where the results are "
                        "compared.\nAll ranks must make the same calls of all_gather(), equally "
                        "often. A rank that has nothing to bring calls it as well, and brings "
                        "that: zeros, or nothing.");
    for (const std::string& words : all) {
        if (words.starts_with(explained))
            throw Explained(words.substr(explained.size()));
        if (words.size() > of_check.size())
            throw Wrong(words.substr(of_check.size()));
    }
}

std::string wrong_elements(std::size_t count, int rank, std::size_t& first,
                           const std::function<bool(std::size_t)>& is_right) {
    std::size_t wrong = 0, last = 0;
    for (std::size_t i = 0; i < count; i++)
        if (!is_right(i)) {
            first = wrong++ == 0 ? i : first;
            last = i;
        }
    if (wrong == 0)
        return "";
    return std::to_string(wrong) + " of " + std::to_string(count) + " elements wrong on rank " +
           std::to_string(rank) + ", the first at " + std::to_string(first) + ", the last at " +
           std::to_string(last) + ". Element " + std::to_string(first) + " ";
}

std::string ranks_and_elements(int ranks, std::size_t count) {
    return std::to_string(ranks) + (ranks == 1 ? " rank, " : " ranks, ") + std::to_string(count) +
           (count == 1 ? " element" : " elements");
}

float share_that_tells(int rank) {
    return static_cast<float>(1 << (3 * rank));
}
std::string wrong_shares(const std::vector<float>& sums, int ranks, int rank) {
    float right = 0;
    for (int r = 0; r < ranks; r++)
        right += share_that_tells(r);
    std::size_t first = 0;
    const std::string wrong =
        wrong_elements(sums.size(), rank, first, [&](std::size_t i) { return sums[i] == right; });
    return wrong.empty() ? "" : wrong + ranks_in(static_cast<double>(sums[first]), ranks);
}

float share_of_place(int rank, std::size_t i) {
    return static_cast<float>((i * 31 + static_cast<std::size_t>(rank) * 577) % 4093);
}
std::string wrong_places(const std::vector<float>& sums, int ranks, int rank) {
    std::size_t first = 0;
    const std::string wrong = wrong_elements(sums.size(), rank, first, [&](std::size_t i) {
        float right = 0;
        for (int r = 0; r < ranks; r++)
            right += share_of_place(r, i);
        return sums[i] == right;
    });
    return wrong.empty()
               ? ""
               : wrong +
                     "is a sum over all ranks, but not of the same place of every "
                     "array: where does each chunk begin and end? (Or was a part of it read "
                     "before it was complete?)";
}

// ---- When a rank may end

namespace {
// Returns what was wrong with this rank's result before it overwrote its array, or "".
std::string wrong_before(Peers& peers, const OnFloats& collective, const std::vector<float>& mine,
                         const std::function<float(std::size_t i)>& right) {
    constexpr int junk_byte = 0x7f;  // four of them are a float that swallows any other
    const std::size_t count = mine.size();
    ArenaBuffer<float> data = peers.allocate<float>(count), kept = peers.allocate<float>(count);
    data.copy_from(mine);
    peers.rank().barrier();
    Stream stream;
    collective(peers, data.data(), count, stream);
    DDP_CHECK(cudaMemcpyAsync(kept.data(), data.data(), count * sizeof(float),
                              cudaMemcpyDeviceToDevice, stream));
    DDP_CHECK(cudaMemsetAsync(data.data(), junk_byte, count * sizeof(float), stream));
    peers.synchronize(stream);
    const std::vector<float> host = kept.to_host_now();
    peers.rank().barrier();
    std::size_t first = 0;
    const std::string wrong = wrong_elements(count, peers.rank().rank(), first,
                                             [&](std::size_t i) { return host[i] == right(i); });
    if (wrong.empty())
        return "";
    return ranks_and_elements(peers.rank().world_size(), count) + ": " + wrong +
           (host[first] > 3e38f ? "is what another rank has written into its own array after the "
                                  "call: it has ended before this one had read its data."
                                : "is " + std::to_string(host[first]) + ", and right is " +
                                      std::to_string(right(first)) + ".");
}
}  // namespace

void check_overwriting(int ranks, const OnFloats& collective,
                       const std::function<float(int rank, std::size_t i)>& brings,
                       const std::function<float(std::size_t i)>& right) {
    const auto check = [&](std::size_t count, int repeats, std::optional<LinkSpeed> link) {
        const auto work = [&](Rank& rank) {
            Peers peers(rank, 1 << 20);
            std::vector<float> mine(count);
            for (std::size_t i = 0; i < count; i++)
                mine[i] = brings(rank.rank(), i);
            for (int i = 0; i < repeats; i++)
                throw_first_wrong(rank, wrong_before(peers, collective, mine, right));
        };
        on_ranks(ranks, work, link);
    };
    check(1000, 1, LinkSpeed{1e9, 20e-3});  // a rank that waits for the link reads late
    constexpr int often = 20;
    if (is_first_order())
        check(100'000, often, std::nullopt);  // and so does a rank that waits for a core
}

// ---- Predicted and measured times

static double seconds_of(const OnFloats& collective, Peers& peers, float* data, std::size_t count) {
    using Clock = std::chrono::steady_clock;
    Stream stream;
    peers.rank().barrier();
    const auto begin = Clock::now();
    collective(peers, data, count, stream);
    peers.synchronize(stream);
    peers.rank().barrier();
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

namespace {
constexpr LinkSpeed slow_link{2e6, 10e-3};

using IsEnough = std::function<bool(double measured)>;

IsEnough is_near(double seconds) {
    return [seconds](double measured) { return std::abs(seconds - measured) <= 0.25 * measured; };
}

// Returns the least of up to ten measured times: a machine with other work to do is slower than the
// link at times, never faster. Three are enough once is_enough(the least so far).
double least_seconds(const OnFloats& collective, int ranks, std::size_t bytes,
                     const IsEnough& is_enough) {
    double least = std::numeric_limits<double>::infinity();
    on_ranks(
        ranks,
        [&](Rank& rank) {
            Peers peers(rank, 1 << 20);
            const std::size_t count = bytes / sizeof(float);
            ArenaBuffer<float> data = peers.allocate<float>(count);
            data.copy_from(std::vector<float>(count));
            for (int i = 0; i < 10; i++) {
                const double seconds = seconds_of(collective, peers, data.data(), count);
                if (rank.rank() == 0)
                    least = std::min(least, seconds);
                if (rank.broadcast(i >= 2 && is_enough(least) ? "enough" : "again", 0) == "enough")
                    return;
            }
        },
        slow_link);
    return least;
}

std::string over_slow_link(int ranks, std::size_t bytes) {
    return std::to_string(ranks) + " ranks, " + std::to_string(bytes) +
           " bytes, a link of 2 MB/s with a latency of 10 ms: ";
}
}  // namespace

// These two throw no Wrong: a time does not depend on the order of a block's threads, of which the
// student would then be told.
void compare(const Prediction& predict, const Prediction& right, const OnFloats& collective,
             int ranks, std::size_t bytes, const std::string& hint) {
    const CostModel message{slow_link.latency_s, 1 / slow_link.bytes_per_second};
    const double predicted = predict(message, ranks, bytes),
                 expected = right(message, ranks, bytes);
    if (std::abs(predicted - expected) <= 0.05 * expected)
        return;
    throw std::runtime_error(
        over_slow_link(ranks, bytes) + "you predict " + format_seconds(predicted) +
        ", and right is " + format_seconds(expected) + ". (Your kernels have just taken " +
        format_seconds(least_seconds(collective, ranks, bytes, is_near(expected))) + ".)\n" + hint);
}

void check_time(const std::string& algorithm, const Prediction& right, const OnFloats& collective,
                int ranks, std::size_t bytes, const std::string& hint) {
    if (!is_first_order())
        return;
    const double expected =
        right({slow_link.latency_s, 1 / slow_link.bytes_per_second}, ranks, bytes);
    const auto is_right = [&](double measured) {
        const double most = ranks <= 2 ? 1.4 : 1.6;  // few threads wait for a core
        return measured >= 0.75 * expected && measured <= most * expected;
    };
    const double measured = least_seconds(collective, ranks, bytes, is_right);
    if (!is_right(measured))
        throw std::runtime_error(over_slow_link(ranks, bytes) + "your kernels take " +
                                 format_seconds(measured) + ", and " + algorithm + " takes " +
                                 format_seconds(expected) + ".\n" + hint +
                                 (expected < measured ? may_be_busy : ""));
}

}  // namespace ddp::test
