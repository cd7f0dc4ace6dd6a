// The native communicator of one host: it chooses the algorithm of each call by the call's size
// alone, never by the launcher or a measurement. All algorithms that it can choose for an operation
// give the same bits.
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
          peers_(rank, arena_bytes, options.timeout_s, options.link, group().ranks()) {}

    std::string kind() const override { return "native"; }
    void synchronize(Stream& stream) override { peers_.synchronize(stream); }

  private:
    const std::shared_ptr<SharedArena>& arena() override { return peers_.arena(); }

    void enqueue_broadcast(const Call& call, Stream& stream) override {
        if (call.bytes() <= tree_bytes)
            tree_broadcast(peers_, call, stream);
        else
            chain_broadcast(peers_, call, stream);
    }
    void enqueue_reduce(const Call& call, Stream& stream) override {
        tree_reduce(peers_, call, stream);
    }
    void enqueue_all_reduce(const Call& call, Stream& stream) override {
        if (call.bytes() > one_shot_bytes)
            return two_shot_all_reduce(peers_, call, stream);
        // One-shot would take any device memory.
        input_offset(*arena(), call);
        output_offset(*arena(), call);
        one_shot_all_reduce(peers_, call, stream);
    }
    void enqueue_reduce_scatter(const Call& call, Stream& stream) override {
        ddp::reduce_scatter(peers_, call, stream);
    }
    void enqueue_all_gather(const Call& call, Stream& stream) override {
        ddp::all_gather(peers_, call, stream);
    }
    void enqueue_send(const Call& call, Stream& stream) override { peers_.send(call, stream); }
    void enqueue_receive(const Call& call, Stream& stream) override {
        peers_.receive(call, stream);
    }

    // The largest size of a broadcast for which a tree is faster than a chain.
    static constexpr std::size_t tree_bytes = 16 << 10;

    Peers peers_;
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
