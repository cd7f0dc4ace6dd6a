#include "09_all_reduce/parameter_server.hpp"

#include "07_broadcast/broadcast.hpp"
#include "07_broadcast/transfer.cuh"
#include "09_all_reduce/launch_collective.cuh"
#include "09_all_reduce/pack.cuh"
#include "09_all_reduce/two_shot.hpp"

namespace ddp {
namespace {

constexpr int server = 0;

// All threads of a block, on the server: takes this block's share from one rank after the other.
template <class T>
__device__ bool sum_all(Collective& collective, ReduceOp op, const Slice& share,
                        std::uint64_t& now_ns) {
    const PeersView& view = collective.view;
    const auto at = [&](std::byte* data) { return reinterpret_cast<T*>(data + share.begin); };
    T* output = at(view.result_of(view.rank, collective.record));
    const T* sum = at(view.data_of(view.rank, collective.record));
    for (int worker = 1; worker < view.world_size; worker++) {
        const int ranks = worker == view.world_size - 1 ? view.world_size : 0;
        const auto add = [&](std::byte* theirs) {
            add_array<T>(op, output, sum, at(theirs), column_range(share.bytes / sizeof(T)), ranks);
        };
        if (!take(collective, worker, 1, share.bytes, now_ns, add))
            return false;
        if (threadIdx.x == 0)
            acknowledge(collective, worker, 1, now_ns);
        sum = output;
    }
    return true;
}

template <class T>
__global__ void sum_on_server(Collective collective, ReduceOp op, std::size_t count) {
    const Slice share = block_share({0, count * sizeof(T)});
    std::uint64_t now_ns = link_time(collective);
    bool is_well = threadIdx.x != 0 || begin_collective(collective);
    if (collective.view.rank == server)
        is_well = sum_all<T>(collective, op, share, now_ns) && is_well;
    else if (threadIdx.x == 0)
        is_well = is_well && post(collective, server, 1, now_ns) &&
                  wait_until_acknowledged(collective, server, 1, now_ns);
    if (threadIdx.x == 0 && is_well)
        end_block(collective);
}

}  // namespace

template <class T>
void parameter_server_all_reduce(Peers& peers, const T* input, T* output, std::size_t count,
                                 ReduceOp op, Stream& stream, const std::string& name) {
    if (peers.view().world_size == 1)  // nobody to serve
        return two_shot_all_reduce(peers, input, output, count, op, stream, name);
    CollectiveCall call = call_of<T>("sum on server", op, count, name);
    call.input = input;
    call.output = output;
    call.input_bytes = call.output_bytes = bytes_of_array<T>(count);
    launch_collective(peers, call, stream, shape_of_transfer(peers, call.input_bytes),
                      sum_on_server<T>, op, count);
    linear_broadcast(peers, output, count, server, stream, name);
}

#define DDP_PARAMETER_SERVER(T)                                                            \
    template void parameter_server_all_reduce(Peers&, const T*, T*, std::size_t, ReduceOp, \
                                              Stream&, const std::string&);
DDP_FOR_EACH_ELEMENT(DDP_PARAMETER_SERVER)

}  // namespace ddp
