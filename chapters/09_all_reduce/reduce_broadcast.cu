#include "09_all_reduce/reduce_broadcast.hpp"

#include "07_broadcast/broadcast.hpp"
#include "08_reduce/tree_reduce.hpp"
#include "09_all_reduce/launch_collective.cuh"

namespace ddp {

template <class T>
void reduce_broadcast_all_reduce(Peers& peers, const T* input, T* output, std::size_t count,
                                 ReduceOp op, Stream& stream, const std::string& name) {
    constexpr int root = 0;
    tree_reduce(peers, input, output, count, op, root, stream, name);
    tree_broadcast(peers, output, count, root, stream, name);
}

#define DDP_REDUCE_BROADCAST(T)                                                            \
    template void reduce_broadcast_all_reduce(Peers&, const T*, T*, std::size_t, ReduceOp, \
                                              Stream&, const std::string&);
DDP_FOR_EACH_ELEMENT(DDP_REDUCE_BROADCAST)

}  // namespace ddp
