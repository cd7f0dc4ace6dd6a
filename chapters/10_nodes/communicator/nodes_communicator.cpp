#include "10_nodes/communicator/nodes_communicator.hpp"

#include "10_nodes/communicator/pairs_over_nodes.hpp"
#include "10_nodes/network/network_proxy.hpp"
#include "10_nodes/placement.hpp"
#include "10_nodes/ring_over_nodes.hpp"
#include "10_nodes/two_level.hpp"

namespace ddp {
namespace {

// The proxy of one communicator. It works for the kernels, for whose end the Peers wait, and lives
// until the end of the run.
struct Retire {
    void operator()(NetworkProxy* proxy) const { proxy->retire(); }
};
using ProxyOfRun = std::unique_ptr<NetworkProxy, Retire>;

ProxyOfRun make_proxy(Rank& rank, std::unique_ptr<Transport> transport) {
    const auto proxy = std::make_shared<NetworkProxy>(rank, std::move(transport));
    rank.keep_until_run_ends(proxy);
    return ProxyOfRun(proxy.get());
}

class NodesCommunicator final : public Communicator {
  public:
    NodesCommunicator(Rank& rank, std::size_t arena_bytes, std::unique_ptr<Transport> transport,
                      std::optional<double> timeout_s, const Group& members,
                      const AllReduceOrder& order)
        : Communicator(rank, members),
          proxy_(make_proxy(rank, std::move(transport))),
          peers_(rank, arena_bytes + RingOverNodes::arena_bytes + TwoLevelAllReduce::arena_bytes,
                 timeout_s, std::nullopt, ranks_on_node(members, rank.job(), rank.rank())),
          placement_(placement_of(members, rank.job(), rank.rank(), order.shape)),
          ring_(peers_, *proxy_, placement_),
          pairs_(peers_, *proxy_, placement_) {
        if (uses_two_levels(placement_, order.levels))
            two_level_.emplace(peers_, *proxy_, placement_);
        rank.barrier();  // no kernel may wait for a rank that still asks for memory
        proxy_->start();
    }

    std::string kind() const override { return "native"; }
    void synchronize(Stream& stream) override { peers_.synchronize(stream); }

  private:
    bool is_local(int number) const { return peers_.index_of(number) >= 0; }

    const std::shared_ptr<SharedArena>& arena() override { return peers_.arena(); }

    void enqueue(const Call& call, Stream& stream) override {
        switch (call.kind) {
            case OperationKind::send:
                return is_local(call.peer) ? peers_.send(call, stream) : pairs_.send(call, stream);
            case OperationKind::receive:
                return is_local(call.peer) ? peers_.receive(call, stream)
                                           : pairs_.receive(call, stream);
            case OperationKind::broadcast:
                return ring_.broadcast(call, stream);
            case OperationKind::reduce:
                return ring_.reduce(call, stream);
            case OperationKind::all_reduce:
                return two_level_ ? two_level_->all_reduce(call, stream)
                                  : ring_.all_reduce(call, stream);
            case OperationKind::reduce_scatter:
                return ring_.reduce_scatter(call, stream);
            case OperationKind::all_gather:
                return ring_.all_gather(call, stream);
            case OperationKind::other:
                break;
        }
        throw std::invalid_argument(call.title() + ": a communicator has no such operation");
    }

    ProxyOfRun proxy_;  // the first member: the others use it to their end
    Peers peers_;
    const Placement placement_;
    RingOverNodes ring_;
    std::optional<TwoLevelAllReduce> two_level_;
    PairsOverNodes pairs_;
};

}  // namespace

std::unique_ptr<Communicator> make_nodes_communicator(Rank& rank, std::size_t arena_bytes,
                                                      std::unique_ptr<Transport> transport,
                                                      const NodeOptions& options) {
    if (rank.job().link)
        throw OptionError(
            "--link simulates a link between the ranks of one node, and these are on several" +
            std::string(rank.job().has_several_nodes() ? ", with a real one"
                                                       : ", which --shape simulates") +
            ": leave it out.");
    const int size = options.group ? options.group->size() : rank.world_size();
    if (size > max_ranks_over_nodes)
        throw OptionError(std::to_string(size) + " ranks are more than the " +
                          std::to_string(max_ranks_over_nodes) +
                          " that one communicator can have: start fewer.");
    return std::make_unique<NodesCommunicator>(rank, arena_bytes, std::move(transport),
                                               options.timeout_s, agreed_group(rank, options.group),
                                               options.order);
}

}  // namespace ddp
