// The exercise narrow_wire: sums whose roundings are known, so that a wrong bit shows its cause;
// the same bits on all ranks; the time, which floats do not reach; and the reader's own prediction
// compared with the reader's own run.
#include "exercises/09_all_reduce/narrow_wire.hpp"

#include <algorithm>
#include <cmath>

#include "common/report/units.hpp"
#include "exercises/support/collectives.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr std::size_t behind = 8;  // elements that no rank may touch
constexpr float untouched = -5;

float rounded(float value) {
    return __bfloat162float(__float2bfloat16(value));
}

// Returns a number between 1 and 2 that uses all bits of a float. Sums of a few such numbers, each
// rounded to bfloat16, are exact in float in any order.
float summand(int rank, std::size_t i) {
    const auto bits = static_cast<std::uint32_t>(i * 2'654'435'761u) ^
                      static_cast<std::uint32_t>(rank + 1) * 0x9e3779b9u;
    return 1 + static_cast<float>((bits ^ bits >> 15) & 0x7fffff) / 0x800000;
}

// Element i of the result, for several ways of rounding.
struct Sums {
    float right = 0, in_bfloat16 = 0, not_rounded = 0, in_float = 0;
    std::vector<float> own_not_rounded;  // by the rank whose own summand is a float in it

    Sums(int ranks, std::size_t i) : own_not_rounded(static_cast<std::size_t>(ranks)) {
        for (int r = 0; r < ranks; r++) {
            in_bfloat16 = rounded(in_bfloat16 + rounded(summand(r, i)));
            not_rounded += rounded(summand(r, i));
            in_float += summand(r, i);
            for (int own = 0; own < ranks; own++)
                own_not_rounded[static_cast<std::size_t>(own)] +=
                    own == r ? summand(r, i) : rounded(summand(r, i));
        }
        right = rounded(not_rounded);
        for (float& sum : own_not_rounded)
            sum = rounded(sum);
    }
};

// Makes one all-reduce, and returns this rank's result.
std::vector<float> all_reduced(Peers& peers, std::size_t count, const std::string& what) {
    const int rank = peers.rank().rank(), ranks = peers.rank().world_size();
    std::vector<float> host(count + behind, untouched);
    for (std::size_t i = 0; i < count; i++)
        host[i] = summand(rank, i);
    Buffer<float> data(host);
    const auto n = static_cast<std::size_t>(ranks);
    auto narrow = peers.allocate<__nv_bfloat16>(n * equal_chunk(count, n) + behind);
    narrow.copy_from(std::vector<__nv_bfloat16>(narrow.size(), __float2bfloat16(untouched)));
    peers.rank().barrier();  // no memory is allocated or freed during an operation
    Stream stream;
    narrow_all_reduce(peers, data.data(), count, narrow.data(), stream);
    peers.synchronize(stream);
    host = data.to_host_now();
    const std::vector<__nv_bfloat16> worked_with = narrow.to_host_now();
    peers.rank().barrier();
    bool is_spoilt = false;
    for (std::size_t i = 0; i < behind; i++)
        is_spoilt = is_spoilt || host[count + i] != untouched ||
                    __bfloat162float(worked_with[narrow.size() - behind + i]) != untouched;
    throw_first_wrong(peers.rank(), is_spoilt
                                        ? what + ": on rank " + std::to_string(rank) +
                                              " you have written behind the end of the array. Is "
                                              "it bytes where it should be elements?"
                                        : "");
    host.resize(count);
    return host;
}

// Returns the sum of element i over the ranks whose bit in `members` is 1.
float sum_over(unsigned int members, std::size_t i) {
    float sum = 0;
    for (int r = 0; members >> r != 0; r++)
        if ((members >> r & 1) != 0)
            sum += rounded(summand(r, i));
    return rounded(sum);
}

using Guess = std::function<float(std::size_t i)>;

// Returns whether some wrong elements from `first` on, enough of them, are all as guessed.
bool are_as(const Guess& guess, const std::vector<float>& yours, int ranks, std::size_t first) {
    std::vector<std::size_t> wrong;
    for (std::size_t i = first; i < yours.size() && wrong.size() < 8; i++)
        if (yours[i] != Sums(ranks, i).right)
            wrong.push_back(i);
    return wrong.size() >= 4 &&
           std::ranges::all_of(wrong, [&](std::size_t i) { return yours[i] == guess(i); });
}

// Returns what the wrong elements from `first` on have in common, or "".
std::string pattern_of(const std::vector<float>& yours, int ranks, std::size_t first) {
    const auto are = [&](const Guess& guess) { return are_as(guess, yours, ranks, first); };
    const unsigned int all = (1u << ranks) - 1;
    for (unsigned int members = 1; members < all; members++)
        if (are([&](std::size_t i) { return sum_over(members, i); })) {
            std::set<int> some;
            for (int r = 0; r < ranks; r++)
                if ((members >> r & 1) != 0)
                    some.insert(r);
            return "is the sum of " + ranks_text(some) +
                   " alone: either the others were left out, or they were read before they were "
                   "there (a handshake waits for them), or nobody has summed this chunk.";
        }
    for (unsigned int members = 1; first > 0 && members <= all; members++)
        if (are([&](std::size_t i) { return sum_over(members, i - first); }))
            return "belongs to another place: it is made of element 0. Which chunk does each rank "
                   "sum, and which does it hand to all_gather()?";
    return "";
}

// Returns how the wrong sums from element i on have been rounded, or "".
std::string wrong_rounding(const std::vector<float>& yours, int ranks, std::size_t i) {
    const float sum = yours[i];
    const Sums sums(ranks, i);
    const auto are = [&](const Guess& guess) { return are_as(guess, yours, ranks, i); };
    if (sum == sums.in_float)
        return "is the sum of the floats. The ranks must send bfloat16.";
    if (sum == sums.not_rounded)
        return "is a sum that was not rounded. The other ranks receive it as a bfloat16: what does "
               "the rank have that computed it?";
    if (sum == sums.in_bfloat16)
        return "has been rounded after every addition. You add in bfloat16: add in float, and "
               "round the sum once.";
    for (int r = 0; r < ranks && ranks > 1; r++)
        if (are([&](std::size_t k) {
                return Sums(ranks, k).own_not_rounded[static_cast<std::size_t>(r)];
            }))
            return "has rank " + std::to_string(r) +
                   "'s summand in it as a float, and only the others' as bfloat16. The rank that "
                   "sums must round its own summand as well.";
    return "";
}

std::string cause_of(const std::vector<float>& yours, int ranks, std::size_t i) {
    const float sum = yours[i];
    if (const std::string words = outside_words(yours); !words.empty())
        return "is no sum of summands." + words;
    if (std::isnan(sum))
        return "is NaN: fresh memory holds it here, and nobody has written to it.";
    if (sum < 0)
        return "is negative, and no summand is: `narrow` was read before this call had written to "
               "it. Is every kernel on the stream that you were given, and in the right order?";
    if (const std::string pattern = pattern_of(yours, ranks, i); !pattern.empty())
        return pattern;
    const auto text = [](float value) { return std::to_string(static_cast<double>(value)); };
    return "is " + text(sum) + ", and should be " + text(Sums(ranks, i).right) + ".";
}

void check_sums(Peers& peers, std::size_t count, const std::string& hint) {
    const int ranks = peers.rank().world_size(), rank = peers.rank().rank();
    const std::string what = ranks_and_elements(ranks, count);
    const std::vector<float> sums = all_reduced(peers, count, what);
    std::size_t first = 0;
    const std::string wrong = wrong_elements(
        count, rank, first, [&](std::size_t i) { return sums[i] == Sums(ranks, i).right; });
    if (wrong.empty())
        return throw_first_wrong(peers.rank(), "");
    const std::string rounding = wrong_rounding(sums, ranks, first);
    throw_first_wrong(peers.rank(),
                      what + ": " + wrong +
                          (rounding.empty() ? cause_of(sums, ranks, first) : rounding) + "\n" +
                          hint,
                      !rounding.empty());
}

void check_on(int ranks, const std::vector<std::size_t>& counts, const std::string& hint) {
    const auto work = [&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        const ArenaBuffer<float> before_arrays = move_arrays(peers);
        for (const std::size_t count : counts)
            check_sums(peers, count, hint);
    };
    on_ranks_with_hint(ranks, work, std::to_string(ranks) + " ranks", hint);
}

// ---- What travels

// The exercise's all-reduce with scratch memory of its own, which it keeps until its work is done.
void reduce_and_wait(Peers& peers, float* data, std::size_t count, Stream& stream) {
    const auto ranks = static_cast<std::size_t>(peers.rank().world_size());
    auto narrow = peers.allocate<__nv_bfloat16>(ranks * equal_chunk(count, ranks));
    narrow_all_reduce(peers, data, count, narrow.data(), stream);
    peers.synchronize(stream);
    peers.rank().barrier();
}

// Returns the seconds of two-shot, with elements of two bytes.
double right_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    const double received = static_cast<double>(bytes) / 2 * (ranks - 1) / ranks;
    return ranks == 1 ? 0 : 2 * (message.alpha_s + received * message.beta_s_per_byte);
}

void check_what_travels(int ranks, std::size_t bytes) {
    check_time(
        "two-shot with bfloat16", right_seconds, reduce_and_wait, ranks, bytes,
        "With whole floats it would take " +
            format_seconds(right_seconds({10e-3, 1 / 2e6}, ranks, 2 * bytes)) +
            ". What do the ranks read of each other, and how much of it? (Or do your kernels "
            "not wait for the link? fetch_over_link() does, for one chunk from each of the "
            "others.)");
}

void check_one_rounding() {
    check_on(1, {1024}, "The case: a single rank, whose summand is rounded like any other.");
    for (const int ranks : {2, 4})
        check_on(ranks, {1024, 8192}, "Rank r sums chunk r, and all ranks get all sums.");
    check_on(3, {1024 * 3}, "Rank r sums chunk r, and all ranks get all sums.");
    check_what_travels(4, 200'000);
}

void check_same_bits() {
    for (const int ranks : {2, 3, 5, 8}) {
        const auto n = static_cast<std::size_t>(ranks);
        check_on(ranks, {1009, 40'013},
                 "The elements do not divide evenly: the last chunks hold fewer elements.");
        check_on(ranks, {1, n + 1, n - 1, 0},
                 "The case: so few elements that some chunks are empty.");
    }
}

void check_seconds() {
    const auto check = [](int ranks, std::size_t bytes, const std::string& hint) {
        compare(narrow_all_reduce_seconds, right_seconds, reduce_and_wait, ranks, bytes, hint);
    };
    check(2, 16, "This short an array is all latency: how often do all ranks synchronize?");
    check(4, 16, "This short an array is all latency: how often do all ranks synchronize?");
    check(1, 16, "The case: a single rank, which sends nothing.");
    check(2, 200'000, "How many bytes does a float have while it travels?");
    check(
        4, 200'000,
        "Each rank gets N - 1 chunks to sum, and N - 1 sums. (Or do your kernels not wait for the "
        "link? fetch_over_link() does, for one chunk from each of the others.)");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"one_rounding", check_one_rounding},
            {"same_bits", check_same_bits},
            {"seconds", check_seconds}};
}

}  // namespace ddp::test
