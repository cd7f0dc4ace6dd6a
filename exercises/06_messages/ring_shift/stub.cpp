// The exercise ring_shift: every rank sends, every rank receives. Read
// exercises/06_messages/README.md first.
#include "exercises/06_messages/ring_shift.hpp"

#include <numeric>

namespace ddp {
namespace {

// Besides peers.send() and peers.receive() you need the numbers of the two other ranks, and a rule
// for which rank receives first.

}  // namespace

void ring_shift(Peers& peers, const float* data, float* received, std::size_t count, int distance,
                Stream& stream) {
    // Task any_distance is solved here as well. Begin with distance 1 and two ranks.
    throw NotImplemented("neighbours");
}

double ring_shift_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    // message.seconds(n) is the time of a message of n bytes. How many follow one another?
    throw NotImplemented("cost");
}

}  // namespace ddp
