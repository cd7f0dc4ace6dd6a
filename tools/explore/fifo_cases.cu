#include "tools/explore/fifo_cases.hpp"

#include "06_messages/support/copy.cuh"
#include "07_broadcast/collective.hpp"
#include "10_nodes/network/fifo.cuh"
#include "10_nodes/network/proxy_side.hpp"

namespace ddp {
namespace {

// So many slices follow the record: the last one needs its slot again.
constexpr std::size_t slices = fifo_slots, slice_floats = 4;
constexpr std::size_t slice = slice_floats * sizeof(float);

// ---- On the device. They do what the kernels of pairs_over_nodes.cu do, with small slices.

__global__ void send_by_fifo(Collective call, FifoSide side, const std::byte* data) {
    FifoEnd to = end_to_fill(side);
    if (!begin_operation(call.view, call.record) || !send_header(call, to))
        return;
    for (std::size_t i = 0; i < slices; i++) {
        std::byte* slot = slot_to_fill(call, to);
        if (slot == nullptr)
            return;
        copy_by_block(slot, data + i * slice, slice);
        publish(to, slice);
    }
    if (wait_until_emptied(call, to))
        end_operation(call.view);
}

__global__ void receive_by_fifo(Collective call, FifoSide side, std::byte* data) {
    FifoEnd from = end_to_empty(side);
    grant(from, 1 + slices);
    if (!begin_operation(call.view, call.record) ||
        !receive_header(call, from, [](const OperationRecord&) { return true; }))
        return;
    for (std::size_t i = 0; i < slices; i++) {
        const std::byte* slot = slot_to_empty(call, from);
        if (slot == nullptr)
            return;
        copy_by_block(data + i * slice, slot, slice);
        return_slot(from);
    }
    end_operation(call.view);
}

__device__ void wait_to_begin(Fifo& fifo, bool is_to, std::uint64_t number) {
    while (!can_begin(fifo, is_to, number))
        __nanosleep(50);
}

// The proxies of both nodes, and a network that has room for one slot.
__global__ void carry(Fifo* from, Fifo* to) {
    const std::uint64_t begin = from->emptied.value;
    for (std::uint64_t number = begin; number <= begin + slices; number++) {
        wait_to_begin(*from, true, number);
        wait_to_begin(*to, false, number);
        copy_by_block(to->slot(number), from->slot(number), from->bytes[number % fifo_slots]);
        say_done(*from, true, number + 1);
        say_done(*to, false, number + 1);
    }
}

// ---- On the host

// The first rank sends to the last one. Of two ranks, which are on one node, the last one has the
// FIFO. Of three, the first and the last are on nodes of their own, and the one between them plays
// what lies between their FIFOs.
void send_by_fifos(Peers& peers, const float* input, float* output, std::size_t count,
                   Stream& stream) {
    const int rank = peers.rank().rank(), last = peers.rank().world_size() - 1;
    const bool is_one_node = last == 1;
    struct Place {
        Fifo* fifo;
    };
    const std::vector<Place> fifos =
        peers.rank().all_gather(Place{peers.extension<CaseFifo>().fifo.data()});
    const auto side = [&](int of_rank, int peer) {
        return FifoSide{fifos[static_cast<std::size_t>(of_rank)].fifo, peer,
                        is_one_node ? peers.view().control[peer] : nullptr};
    };
    const auto call = [&](const std::string& operation) {
        return Collective{
            peers.view(),
            peers.next_record({.operation = operation, .count = count, .inputs = 0, .outputs = 0})};
    };
    if (rank == 0)
        launch(stream, {1, 1}, send_by_fifo, call("send"), side(is_one_node ? last : 0, last),
               reinterpret_cast<const std::byte*>(input));
    else if (rank == last)
        launch(stream, {1, 1}, receive_by_fifo, call("receive"), side(last, 0),
               reinterpret_cast<std::byte*>(output));
    else
        launch(stream, {1, 1}, carry, fifos.front().fifo, fifos.back().fifo);
}

std::vector<float> sent_to_last(int rank, const std::vector<std::vector<float>>& numbers) {
    return rank + 1 == static_cast<int>(numbers.size())
               ? numbers[0]
               : std::vector<float>(numbers[0].size(), overwritten);
}

}  // namespace

// Each of its slots has been used before.
CaseFifo::CaseFifo(Peers& peers) : fifo(peers.allocate<Fifo>(1)) {
    FifoHead used;
    used.filled.value = used.emptied.value = used.wanted.value = fifo_slots;
    static_cast<FifoHead&>(*fifo.data()) = used;
}

std::vector<ExploredCase> fifo_cases() {
    std::vector<ExploredCase> cases;
    for (const int ranks : {2, 3}) {
        const std::string note = ranks == 2 ? "one node" : "proxies";
        ExploredCase fifo{"FIFO", ranks,         1,           slices * slice_floats,
                          note,   send_by_fifos, sent_to_last};
        fifo.has_fifos = true;
        cases.push_back(fifo);
    }
    return cases;
}

}  // namespace ddp
