// The exercise ring_by_hand: the sum round a ring. Read exercises/09_all_reduce/README.md first.
#include "exercises/09_all_reduce/ring_by_hand.hpp"

namespace ddp {
namespace {

// stub
//: Both tasks need the numbers of the two neighbours, and the chunk that comes before chunk 0.
// Returns chunk i, counted round: chunk -1 is the last one.
Chunk chunk_round(int i, int ranks, std::size_t count) {
    return chunk_of(count, static_cast<std::size_t>(ranks),
                    static_cast<std::size_t>((i + 2 * ranks) % ranks), sizeof(float));
}

// Sends to the right and receives from the left. If all ranks sent first, nobody would receive.
void pass_on(Communicator& communicator, const float* sent, std::size_t sent_count, float* received,
             std::size_t received_count, Stream& stream) {
    const int rank = communicator.index(), ranks = communicator.world_size();
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    if (rank % 2 == 0) {
        communicator.send(sent, sent_count, right, stream);
        communicator.receive(received, received_count, left, stream);
    } else {
        communicator.receive(received, received_count, left, stream);
        communicator.send(sent, sent_count, right, stream);
    }
}
// end stub

}  // namespace

void ring_reduce_scatter(Communicator& communicator, float* data, float* room, std::size_t count,
                         Stream& stream) {
    // stub: reduce_scatter
    //: Begin with two ranks: one step, in which each sends what the other one is to have.
    const int rank = communicator.index(), ranks = communicator.world_size();
    for (int step = 1; step < ranks; step++) {
        const Chunk sent = chunk_round(rank - step, ranks, count);
        const Chunk received = chunk_round(rank - step - 1, ranks, count);
        pass_on(communicator, data + sent.begin, sent.size, room, received.size, stream);
        add(data + received.begin, room, received.size, stream);
    }
    // end stub
}

void ring_all_gather(Communicator& communicator, float* data, std::size_t count, Stream& stream) {
    // stub: all_gather
    //: Goes on the same way round, but what comes replaces what was there.
    const int rank = communicator.index(), ranks = communicator.world_size();
    for (int step = ranks; step < 2 * ranks - 1; step++) {
        const Chunk sent = chunk_round(rank - step, ranks, count);
        const Chunk received = chunk_round(rank - step - 1, ranks, count);
        pass_on(communicator, data + sent.begin, sent.size, data + received.begin, received.size,
                stream);
    }
    // end stub
}

}  // namespace ddp
