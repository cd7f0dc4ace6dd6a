// The native communicator of one node. It chooses the algorithm of each call by the call's size and
// the number of ranks, never by the launcher or a measurement:
//
//     call              algorithm
//     send, receive     a message (06_messages)
//     broadcast         a tree, or a chain of slices if it is long (07_broadcast)
//     reduce            a tree (08_reduce)
//     all_reduce        one-shot, or two-shot if it is long
//     reduce_scatter    the first half of two-shot
//     all_gather        the second half
//
// All algorithms that it can choose for an operation give the same bits.
#include "09_all_reduce/communicator.hpp"

#include <stdexcept>

#include "07_broadcast/broadcast.hpp"
#include "08_reduce/tree_reduce.hpp"
#include "09_all_reduce/all_reduce.hpp"

namespace ddp {
namespace {

class NativeCommunicator final : public Communicator {
  public:
    NativeCommunicator(Rank& rank, std::size_t arena_bytes, const CommunicatorOptions& options)
        : Communicator(rank, agreed_group(rank, options.group)),
          peers_(rank, arena_bytes, options.timeout_s, options.link, group().ranks()),
          max_one_shot_(largest_one_shot(peers_.view())) {}

    std::string kind() const override { return "native"; }
    Peers* capturable() override { return &peers_; }
    void synchronize(Stream& stream) override { peers_.synchronize(stream); }

  private:
    const std::shared_ptr<SharedArena>& arena() override { return peers_.arena(); }

    void enqueue(const Call& call, Stream& stream) override {
        switch (call.kind) {
            case OperationKind::send:
                return peers_.send(call, stream);
            case OperationKind::receive:
                return peers_.receive(call, stream);
            case OperationKind::broadcast:
                return call.bytes() <= tree_bytes ? tree_broadcast(peers_, call, stream)
                                                  : chain_broadcast(peers_, call, stream);
            case OperationKind::reduce:
                return tree_reduce(peers_, call, stream);
            case OperationKind::all_reduce:
                return enqueue_all_reduce(call, stream);
            case OperationKind::reduce_scatter:
                return ddp::reduce_scatter(peers_, call, stream);
            case OperationKind::all_gather:
                return ddp::all_gather(peers_, call, stream);
            case OperationKind::other:
                break;
        }
        throw std::invalid_argument(call.title() + ": a communicator has no such operation");
    }
    void enqueue_all_reduce(const Call& call, Stream& stream) {
        if (call.bytes() > max_one_shot_)
            return two_shot_all_reduce(peers_, call, stream);
        // One-shot would take any device memory.
        input_offset(*arena(), call);
        output_offset(*arena(), call);
        one_shot_all_reduce(peers_, call, stream);
    }

    // Returns the largest size of an all-reduce for which one-shot is faster than two-shot. Two
    // ranks on a CPU see each other's flags in a fraction of a microsecond, unless a link is
    // simulated: one synchronization less is then worth less than the copy and the sums that
    // one-shot adds.
    static std::size_t largest_one_shot(const PeersView& view) {
        const bool is_quick =
            kernels_run_on_cpu && view.world_size == 2 && view.link.bytes_per_ns == 0;
        return is_quick ? 64 : one_shot_bytes;
    }

    // The largest size of a broadcast for which a tree is faster than a chain.
    static constexpr std::size_t tree_bytes = 16 << 10;

    Peers peers_;
    const std::size_t max_one_shot_;
};

}  // namespace

void Communicator::require_rank(int rank, const std::string& what) const {
    if (rank < 0 || rank >= world_size())
        throw std::invalid_argument(what + " rank " + std::to_string(rank) +
                                    ": the ranks are 0 to " + std::to_string(world_size() - 1));
}

std::unique_ptr<Communicator> make_native_communicator(Rank& rank, std::size_t arena_bytes,
                                                       const CommunicatorOptions& options) {
    return std::make_unique<NativeCommunicator>(rank, arena_bytes, options);
}

}  // namespace ddp
