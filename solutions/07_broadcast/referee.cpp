// The exercise referee: a test that broadcasts fail. Read exercises/07_broadcast/README.md first.
#include "exercises/07_broadcast/referee.hpp"

#include <algorithm>

namespace ddp {
namespace {

// stub
//: Which values do you put into the arrays, so that every mistake shows? And how many elements?
constexpr std::size_t longest = 30'000, behind = 4;  // elements; the last four must not change

// Returns the value of element `i` of `rank` before call number `call`. No two elements of a call
// are equal, and none is equal to one of the call before.
float element(int rank, std::size_t i, int call) {
    return static_cast<float>(static_cast<std::size_t>(call % 2 * max_peers + rank) * 32'768 + i);
}

// Calls the candidate once, and returns whether this rank's array is right.
bool is_right(Peers& peers, const Candidate& candidate, ArenaBuffer<float>& data, std::size_t count,
              int root, int call) {
    std::vector<float> values(data.size());
    for (std::size_t i = 0; i < values.size(); i++)
        values[i] = element(peers.rank().rank(), i, call);
    data.copy_from(values);
    Stream stream;
    candidate(peers, data.data(), count, root, stream);
    peers.synchronize(stream);
    for (std::size_t i = 0; i < count; i++)
        values[i] = element(root, i, call);
    return data.to_host_now() == values;
}
// end stub

}  // namespace

bool is_broadcast(Peers& peers, const Candidate& candidate) {
    // stub: values
    //: Tasks same_verdict and every_size are solved here as well. peers.allocate<float>(size)
    //: returns memory that a broadcast can use; it has copy_from(vector) and to_host_now(). After
    //: the candidate's call, wait with peers.synchronize(stream).
    Rank& rank = peers.rank();
    const auto ranks = static_cast<std::size_t>(rank.world_size());
    ArenaBuffer<float> data = peers.allocate<float>(longest + behind);
    bool all_right = true;
    int call = 0;
    // No rank leaves the loop before the others, which would wait for it.
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, ranks, ranks + 1, std::size_t{1009}, longest})
        for (int root = 0; root < rank.world_size(); root++)
            all_right = is_right(peers, candidate, data, count, root, call++) && all_right;
    const std::vector<std::string> verdicts = rank.all_gather(all_right ? "right" : "wrong");
    return std::ranges::count(verdicts, "wrong") == 0;
    // end stub
}

}  // namespace ddp
