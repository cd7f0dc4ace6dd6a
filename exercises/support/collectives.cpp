#include "exercises/support/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "07_broadcast/collective.hpp"
#include "exercises/support/gate.hpp"
#include "exercises/support/launches.hpp"
#include "exercises/support/turns.hpp"

namespace ddp::test {

namespace {

// Holds what the last collective of a rank has left in its control block, when all its kernels have
// ended.
struct LeftBehind {
    OperationRecord record;   // of the rank's last operation; its sequence number counts them
    bool is_over;             // whether end_block was called by all blocks
    unsigned int odd_blocks;  // 0 if it was called once by each block
    std::set<int> posted_by;  // ranks that have posted a step to this one: whose data it was sent
};

LeftBehind left_behind(Peers& peers) {
    const int rank = peers.view().rank, ranks = peers.view().world_size;
    const auto block = std::make_unique<ControlBlock>();
    DDP_CHECK(cudaMemcpy(block.get(), peers.view().control[rank], sizeof(ControlBlock),
                         cudaMemcpyDeviceToHost));
    const auto& state = *reinterpret_cast<const CollectiveState*>(block->room);
    const PostedCall* own = state.posted_calls[rank];
    const std::uint64_t number = std::max(own[0].number, own[1].number);
    LeftBehind left{block->current, block->is_over != 0, state.blocks, {}};
    for (int r = 0; r < ranks; r++)
        for (const Flag& flag : state.posted[r])
            if (number > 0 && flag.value >> 32 == number)
                left.posted_by.insert(r);
    return left;
}

}  // namespace

std::string ranks_text(const std::set<int>& ranks) {
    std::string text;
    for (auto r = ranks.begin(); r != ranks.end(); ++r)
        text += (r == ranks.begin()            ? ""
                 : std::next(r) == ranks.end() ? " and "
                                               : ", ") +
                std::to_string(*r);
    return ranks.empty() ? "no rank" : (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

// ---- Where arrays lie

namespace {
constexpr float outside = 1e30f;  // as a float, and as two bfloat16
}

ArenaBuffer<float> move_arrays(Peers& peers) {
    constexpr std::size_t most = 60'000;  // elements; no array of a test is longer
    peers.allocate<float>(most).copy_from(std::vector<float>(most, outside));
    constexpr std::size_t step = 128;  // elements, 512 bytes
    return peers.allocate<float>(step * static_cast<std::size_t>(peers.rank().rank() + 1));
}

std::string outside_words(const std::vector<float>& results) {
    if (std::ranges::none_of(results, [](float x) { return std::abs(x) > outside / 2; }))
        return "";
    return "\nSome of it was read outside of the arrays. Each rank's array lies at a place of its "
           "own in its arena, not where yours lies in yours: rank r's is at view.data_of(r, "
           "offsets_of(collective, r)), once there was a handshake with it.";
}

// ---- Records and flags

namespace {

std::string wrong_trace(Peers& peers, const LeftBehind& before, const LeftBehind& left,
                        std::size_t count, const RightTrace& right) {
    const int rank = peers.rank().rank();
    const std::string name = "rank " + std::to_string(rank) + " ";
    const std::uint64_t operations = left.record.sequence - before.record.sequence;
    if (operations == 0)
        return name +
               "has begun no operation. The ranks know what a rank does by its record: describe "
               "the call as a Call, and launch your kernel by launch_collective().";
    if (operations > 1)
        return name + "has made " + std::to_string(operations) +
               " operations, one after the other, where one kernel does all of it.";
    if (!left.is_over || left.odd_blocks != 0)
        return name +
               "is still in its operation, by its own record, although its kernel has ended: "
               "one thread of each block must call end_block() when the block has done its "
               "work, also on the root and on a rank that is alone.";
    if (right.root >= 0 && left.record.peer != right.root)
        return name + "has written down a call of root " + std::to_string(left.record.peer) +
               ", and the root is " + std::to_string(right.root) +
               ". Call::peer is the root: by it the handshake finds ranks that do not agree. "
               "broadcast_call() fills it in.";
    if (left.record.count != count)
        return name + "has written down a call of " + std::to_string(left.record.count) +
               " elements, and the array has " + std::to_string(count) + ": Call::count.";
    return right.judge(rank, left.posted_by);
}

}  // namespace

void check_trace(int ranks, const OnFloats& collective, const RightTrace& right,
                 const std::string& what) {
    on_ranks(ranks, [&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        constexpr std::size_t count = 8192;
        ArenaBuffer<float> data = peers.allocate<float>(count);
        data.copy_from(std::vector<float>(count));
        const LeftBehind before = left_behind(peers);
        rank.barrier();
        Stream stream;
        collective(peers, data.data(), count, stream);
        peers.synchronize(stream);
        rank.barrier();
        const std::string wrong = wrong_trace(peers, before, left_behind(peers), count, right);
        throw_first_wrong(rank, wrong.empty() ? "" : what + ": " + wrong);
        Stream other;  // the next call may come on any stream, and waits for this one
        collective(peers, data.data(), count, other);
        peers.synchronize(other);
        rank.barrier();
    });
}

// ---- The threads

void check_who_writes(int ranks, const OnFloats& collective) {
    constexpr std::size_t count = 8192;
    on_ranks(ranks, [&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        ArenaBuffer<float> data = peers.allocate<float>(count);
        data.copy_from(std::vector<float>(count, 1));
        const auto arrays = rank.all_gather(reinterpret_cast<std::uintptr_t>(data.data()));
        Stream stream;
        const auto work = [&] {
            rank.barrier();
            collective(peers, data.data(), count, stream);
            peers.synchronize(stream);
            rank.barrier();
        };
        if (rank.rank() != 0)
            return work();
        std::vector<SharedWork> written;
        for (const std::uintptr_t array : arrays)
            written.push_back(
                {"a rank's data", reinterpret_cast<const float*>(array), count, sizeof(float)});
        check_shares(ranks_and_elements(ranks, count), written, work);
    });
}

// ---- The host

void check_enqueues_only(int ranks, const OnFloats& collective, float right) {
    Turns turns;
    const auto work = [&](Rank& rank) {
        Peers peers(rank, 1 << 20);
        constexpr std::size_t count = 1000;
        const std::vector<float> ready(count, static_cast<float>(rank.rank() + 1));
        const Buffer<float> comes_late(ready);
        ArenaBuffer<float> data = peers.allocate<float>(count);
        data.copy_from(std::vector<float>(count, -1));
        rank.barrier();
        Stream stream;
        std::string for_ranks;
        std::string wrong = wrong_if_host_waits(stream, [&] {
            DDP_CHECK(cudaMemcpyAsync(data.data(), comes_late.data(), count * sizeof(float),
                                      cudaMemcpyDeviceToDevice, stream));
            for_ranks =
                turns.take(rank.rank(), [&] { collective(peers, data.data(), count, stream); });
        });
        peers.synchronize(stream);
        if (wrong.empty())
            wrong = for_ranks;
        const std::vector<float> results = data.to_host_now();
        if (wrong.empty() && std::ranges::count(results, right) != std::ssize(results))
            wrong = "rank " + std::to_string(rank.rank()) +
                    " has another result if the data comes late, by work that was enqueued on the "
                    "stream before your function was called. Launch on that stream.";
        throw_first_wrong(rank,
                          wrong.empty() ? "" : ranks_and_elements(ranks, count) + ": " + wrong);
    };
    try {
        on_ranks(ranks, work);
    } catch (const Wrong& wrong) {  // it may depend on the ranks' times, but on no block's threads
        throw std::runtime_error(wrong.what());
    }
}

}  // namespace ddp::test
