// The exercise ring_shift: everybody sends, everybody receives. Read
// exercises/06_messages/README.md first.
#include "exercises/06_messages/ring_shift.hpp"

#include <numeric>

namespace ddp {
namespace {

// What you need beside peers.send() and peers.receive(): the ranks' numbers, and who receives
// first.

}  // namespace

void ring_shift(Peers& peers, const float* data, float* received, std::size_t count, int distance,
                Stream& stream) {
    // Task any_distance is solved here, too. Begin with distance 1 and two ranks.
    throw NotImplemented("neighbours");
}

double ring_shift_seconds(const CostModel& message, int ranks, int distance, std::size_t bytes) {
    // message.seconds(n) is what a message of n bytes takes. How many stand in a row?
    throw NotImplemented("cost");
}

}  // namespace ddp
