#include "tools/explore/cases.hpp"

#include "06_messages/support/copy.cuh"
#include "06_messages/support/shared_device.hpp"
#include "07_broadcast/broadcast.hpp"
#include "08_reduce/tree_reduce.hpp"
#include "09_all_reduce/all_reduce.hpp"

namespace ddp {
namespace {

// Copies an array, a few words at a time: the explorer looks at each access.
__global__ void copy_array_of_case(float* to, const float* from, std::size_t count) {
    copy_bytes(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
               count * sizeof(float));
}
void copy(float* to, const float* from, std::size_t count, Stream& stream) {
    launch(stream, {1, 1}, copy_array_of_case, to, from, count);
}

std::vector<float> sum_of(int, const std::vector<std::vector<float>>& numbers) {
    std::vector<float> sum = numbers[0];
    for (std::size_t rank = 1; rank < numbers.size(); rank++)
        for (std::size_t i = 0; i < sum.size(); i++)
            sum[i] += numbers[rank][i];
    return sum;
}

// Rank 0 sends to rank 1, rank 1 to rank 2, and so on.
void send_on(Peers& peers, const float* input, float* output, std::size_t count, Stream& stream) {
    const int rank = peers.rank().rank();
    if (rank > 0)
        peers.receive(output, count, rank - 1, stream);
    if (rank < peers.rank().world_size() - 1)
        peers.send(input, count, rank + 1, stream);
}

std::vector<float> numbers_of_left(int rank, const std::vector<std::vector<float>>& numbers) {
    return rank == 0 ? std::vector<float>(numbers[0].size(), overwritten)
                     : numbers[static_cast<std::size_t>(rank - 1)];
}

using AllReduceCall = void (*)(Peers& peers, const Call& call, Stream& stream);

ExploredCase case_of(const std::string& algorithm, int ranks, int rounds,
                     AllReduceCall all_reduce) {
    const auto run = [all_reduce](Peers& peers, const float* input, float* output,
                                  std::size_t count, Stream& stream) {
        all_reduce(peers, reduction_call("all_reduce", input, output, count, ReduceOp::sum, ""),
                   stream);
    };
    // A chunk of 128 bytes for each rank.
    const std::string note = rounds == 1 ? "one call" : std::to_string(rounds) + " calls";
    return {algorithm, ranks, rounds, static_cast<std::size_t>(32 * ranks), note, run, sum_of};
}

// Chunks of two slices.
ExploredCase ring_case(int ranks) {
    constexpr std::size_t slice = 128;
    ExploredCase ring =
        case_of("ring", ranks, 1, [](Peers& peers, const Call& call, Stream& stream) {
            ring_all_reduce(peers, call, stream, slice);
        });
    ring.count *= 2;
    ring.note = "2 slices";
    return ring;
}

// Returns the case of an all-reduce of the list: one call, but for those where a rank may be a call
// or two ahead.
ExploredCase case_of(const ListedAllReduce& listed, int ranks) {
    if (listed.run == static_cast<AllReduceCall>(ring_all_reduce))
        return ring_case(ranks);
    int calls = 1;
    if (listed.run == static_cast<AllReduceCall>(two_shot_all_reduce))
        calls = 2;
    if (listed.run == static_cast<AllReduceCall>(one_shot_all_reduce))
        calls = 3;
    return case_of(listed.name, ranks, calls, listed.run);
}

// Reduces by a tree and broadcasts from its root, in slices of 128 bytes: more of them than a rank
// between the leaves and the root has slots for.
void sliced_tree(Peers& peers, const Call& call, Stream& stream) {
    constexpr std::size_t slice = 128;
    Call reduce = call;
    reduce.kind = OperationKind::reduce;
    reduce.peer = 0;
    tree_reduce(peers, reduce, stream, slice);
    Call broadcast = reduce;
    broadcast.kind = OperationKind::broadcast;
    broadcast.input = call.output;
    broadcast.op.reset();
    tree_broadcast(peers, broadcast, stream);
}
ExploredCase tree_case(int ranks) {
    constexpr int slices = 6;
    ExploredCase tree = case_of("reduce+broadcast", ranks, 1, sliced_tree);
    tree.count = 32 * slices;
    tree.note = std::to_string(slices) + " slices";
    return tree;
}

// Four protocols in a row. After a tree not all ranks have heard of each other, and the next
// collective begins all the same; a rank may then still be reading the call of the first one.
void mixed(Peers& peers, const Call& call, Stream& stream) {
    one_shot_all_reduce(peers, call, stream);
    reduce_broadcast_all_reduce(peers, call, stream);
    one_shot_all_reduce(peers, call, stream);
    ring_all_reduce(peers, call, stream);
}

// A reduce alone: nothing follows that would have waited for it.
ExploredCase reduce_case(int ranks) {
    constexpr int slices = 6;
    const auto run = [](Peers& peers, const float* input, float* output, std::size_t count,
                        Stream& stream) {
        Call reduce = reduction_call("reduce", input, output, count, ReduceOp::sum, "");
        reduce.kind = OperationKind::reduce;
        reduce.peer = 0;
        constexpr std::size_t slice = 128;
        tree_reduce(peers, reduce, stream, slice);
    };
    const auto expected = [](int rank, const std::vector<std::vector<float>>& numbers) {
        return rank == 0 ? sum_of(rank, numbers)
                         : std::vector<float>(numbers[0].size(), overwritten);
    };
    return {"reduce", ranks, 1, 32 * slices, std::to_string(slices) + " slices", run, expected};
}

// After a linear broadcast its first child has not heard of the second, which may still be in the
// one-shot before: reading what the child staged there, and its call. The next one-shot stages
// again, and the next broadcast but one posts a call again.
void one_shots_and_linear(Peers& peers, const Call& call, Stream& stream) {
    Call broadcast = call;
    broadcast.kind = OperationKind::broadcast;
    broadcast.peer = 0;
    broadcast.input = call.output;
    broadcast.op.reset();
    for (int i = 0; i < 2; i++) {
        one_shot_all_reduce(peers, call, stream);
        linear_broadcast(peers, broadcast, stream);
    }
    linear_broadcast(peers, broadcast, stream);
}

// Broadcasts rank 0's numbers into the outputs of all.
using Broadcast = void (*)(Peers& peers, const Call& call, Stream& stream);
ExploredCase broadcast_case(const std::string& algorithm, int ranks, const std::string& note,
                            Broadcast broadcast) {
    const auto run = [broadcast](Peers& peers, const float* input, float* output, std::size_t count,
                                 Stream& stream) {
        copy(output, input, count, stream);  // the root's is read
        broadcast(peers, broadcast_call(output, count, 0), stream);
    };
    const auto expected = [](int, const std::vector<std::vector<float>>& numbers) {
        return numbers[0];
    };
    return {algorithm, ranks, 2, static_cast<std::size_t>(32 * ranks), note, run, expected};
}
void chain_of_slices(Peers& peers, const Call& call, Stream& stream) {
    chain_broadcast(peers, call, stream, 3);
}

// A part of all arrays for each rank: its sum, in the first elements of the output.
ExploredCase reduce_scatter_case(int ranks) {
    const auto run = [](Peers& peers, const float* input, float* output, std::size_t count,
                        Stream& stream) {
        const auto parts = static_cast<std::size_t>(peers.rank().world_size());
        reduce_scatter(peers, input, output, count / parts, ReduceOp::sum, stream);
    };
    const auto expected = [](int rank, const std::vector<std::vector<float>>& numbers) {
        const std::vector<float> sum = sum_of(rank, numbers);
        const std::size_t part = sum.size() / numbers.size();
        std::vector<float> result(sum.size(), overwritten);
        for (std::size_t i = 0; i < part; i++)
            result[i] = sum[static_cast<std::size_t>(rank) * part + i];
        return result;
    };
    return {"reduce_scatter", ranks, 2,       static_cast<std::size_t>(32 * ranks),
            "2 calls",        run,   expected};
}

// The first part of every rank's array, on every rank.
ExploredCase all_gather_case(int ranks) {
    const auto run = [](Peers& peers, const float* input, float* output, std::size_t count,
                        Stream& stream) {
        const auto parts = static_cast<std::size_t>(peers.rank().world_size());
        all_gather(peers, input, output, count / parts, stream);
    };
    const auto expected = [](int, const std::vector<std::vector<float>>& numbers) {
        const std::size_t part = numbers[0].size() / numbers.size();
        std::vector<float> result;
        for (const std::vector<float>& of_rank : numbers)
            result.insert(result.end(), of_rank.begin(),
                          of_rank.begin() + static_cast<std::ptrdiff_t>(part));
        return result;
    };
    return {"all_gather", ranks, 2, static_cast<std::size_t>(32 * ranks), "2 calls", run, expected};
}

// Each block has its share of the data, and its own flags.
ExploredCase of_two_blocks(ExploredCase of_one) {
    of_one.blocks = 2;
    of_one.count *= 2;
    of_one.note = "2 blocks";
    return of_one;
}

ExploredCase further_case(const FurtherAllReduce& further, int ranks) {
    const auto run = [further](Peers& peers, const float* input, float* output, std::size_t count,
                               Stream& stream) {
        copy(output, input, count, stream);  // it works in place
        further.run(peers, output, count, stream);
    };
    return {further.name, ranks, 1, static_cast<std::size_t>(32 * ranks), "one call", run, sum_of};
}

}  // namespace

// Kernels are explored here, and not run: there is nothing to rehearse.
void rehearse(Rank&, const PeersView&) {}

CaseArrays::CaseArrays(Peers& peers, const ExploredCase& explored)
    : numbers(peers.allocate<float>(explored.count * static_cast<std::size_t>(explored.rounds))),
      results(peers.allocate<float>(numbers.size())),
      input(peers.allocate<float>(explored.count * static_cast<std::size_t>(explored.streams))),
      output(peers.allocate<float>(input.size())),
      blank(peers.allocate<float>(explored.count)) {
    std::vector<float> host;
    for (int round = 0; round < explored.rounds; round++)
        for (std::size_t i = 0; i < explored.count; i++)
            host.push_back(number_of(peers.rank().rank(), round, i));
    numbers.copy_from(host);
    results.copy_from(std::vector<float>(results.size(), overwritten));
    output.copy_from(std::vector<float>(output.size(), overwritten));
    blank.copy_from(std::vector<float>(blank.size(), overwritten));
}

std::vector<ExploredCase> explored_cases() {
    std::vector<ExploredCase> cases;
    for (const int ranks : {2, 3})
        cases.push_back({"send/receive", ranks, 2, 32, "2 messages", send_on, numbers_of_left});
    for (const ListedAllReduce& listed : all_reduces)
        for (const int ranks : {2, 3})
            if (listed.run != nullptr)
                cases.push_back(case_of(listed, ranks));
    cases.push_back(case_of("reduce+broadcast", 4, 1, reduce_broadcast_all_reduce));
    for (const int ranks : {2, 3, 4})
        cases.push_back(tree_case(ranks));
    for (const int ranks : {2, 3}) {
        cases.push_back(broadcast_case("linear", ranks, "2 calls", linear_broadcast));
        cases.push_back(broadcast_case("all at once", ranks, "2 calls", all_at_once_broadcast));
        cases.push_back(broadcast_case("chain", ranks, "3 slices", chain_of_slices));
        cases.push_back(reduce_scatter_case(ranks));
        cases.push_back(all_gather_case(ranks));
    }
    for (const int ranks : {2, 3})
        cases.push_back(case_of("mixed", ranks, 1, mixed));
    cases.push_back(case_of("one-shot+linear", 3, 1, one_shots_and_linear));
    cases.push_back(reduce_case(4));
    for (const int ranks : {2, 3}) {
        ExploredCase messages{"send/receive", ranks, 2, 32, "2 streams", send_on, numbers_of_left};
        messages.streams = 2;
        cases.push_back(messages);
    }
    for (const ExploredCase& one_block :
         {ExploredCase{"send/receive", 2, 2, 32, "2 messages", send_on, numbers_of_left},
          ring_case(2), case_of("two-shot", 2, 2, two_shot_all_reduce),
          case_of("two-shot", 3, 1, two_shot_all_reduce), tree_case(2),
          broadcast_case("chain", 3, "3 slices", chain_of_slices), reduce_scatter_case(2),
          all_gather_case(2)})
        cases.push_back(of_two_blocks(one_block));
    for (const ExploredCase& fifo : fifo_cases())
        cases.push_back(fifo);
    for (const ExploredCase& mailboxes : mailbox_cases())
        cases.push_back(mailboxes);
    for (const FurtherAllReduce& further : further_all_reduces())
        for (const int ranks : {2, 3})
            cases.push_back(further_case(further, ranks));
    return cases;
}

void launch_rounds(Peers& peers, const ExploredCase& explored, CaseArrays& arrays,
                   std::span<Stream> streams) {
    const std::size_t count = explored.count;
    for (int round = 0; round < explored.rounds; round++) {
        const std::size_t first = static_cast<std::size_t>(round) * count;
        const std::size_t s = static_cast<std::size_t>(round) % streams.size();
        float *input = arrays.input.data() + s * count, *output = arrays.output.data() + s * count;
        copy(input, arrays.numbers.data() + first, count, streams[s]);
        explored.run(peers, input, output, count, streams[s]);
        copy(arrays.results.data() + first, output, count, streams[s]);
        copy(output, arrays.blank.data(), count, streams[s]);
    }
    for (std::size_t s = 0; s < streams.size(); s++)
        copy(arrays.input.data() + s * count, arrays.blank.data(), count, streams[s]);
}

float number_of(int rank, int round, std::size_t i) {
    return static_cast<float>(1000 * (round + 1) + 200 * (rank + 1)) + static_cast<float>(i);
}

}  // namespace ddp
