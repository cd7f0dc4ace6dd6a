// Reduce, then broadcast: the two trees of the chapters before, one after the other on the stream.
#include "07_broadcast/broadcast.hpp"
#include "08_reduce/tree_reduce.hpp"
#include "09_all_reduce/all_reduce.hpp"

namespace ddp {

void reduce_broadcast_all_reduce(Peers& peers, const Call& call, Stream& stream) {
    constexpr int root = 0;
    // Phase 1: rank 0 has the sum in its output.
    Call reduce = call;
    reduce.kind = OperationKind::reduce;
    reduce.peer = root;
    tree_reduce(peers, reduce, stream);
    // Phase 2: so has every rank.
    Call broadcast = call;
    broadcast.kind = OperationKind::broadcast;
    broadcast.peer = root;
    broadcast.input = call.output;
    broadcast.op.reset();
    tree_broadcast(peers, broadcast, stream);
}

}  // namespace ddp
