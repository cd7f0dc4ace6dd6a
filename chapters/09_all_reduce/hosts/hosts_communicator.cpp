#include "09_all_reduce/hosts/hosts_communicator.hpp"

#include "09_all_reduce/hosts/network_proxy.hpp"
#include "09_all_reduce/hosts/pairs_over_hosts.hpp"
#include "09_all_reduce/hosts/ring_over_hosts.hpp"
#include "09_all_reduce/with_type.hpp"

namespace ddp {
namespace {

// Works for the kernels, which the peers await at their end, and lives until the end of the run.
struct Retire {
    void operator()(NetworkProxy* proxy) const { proxy->retire(); }
};
using CarrierOfRun = std::unique_ptr<NetworkProxy, Retire>;

CarrierOfRun make_carrier(Rank& rank, std::unique_ptr<Transport> transport) {
    const auto proxy = std::make_shared<NetworkProxy>(rank, std::move(transport));
    rank.keep_until_run_ends(proxy);
    return CarrierOfRun(proxy.get());
}

class HostsCommunicator final : public Communicator {
  public:
    HostsCommunicator(Rank& rank, std::size_t arena_bytes, std::unique_ptr<Transport> transport,
                      std::optional<double> timeout_s)
        : Communicator(rank),
          carrier_(make_carrier(rank, std::move(transport))),
          peers_(rank, arena_bytes + RingOverHosts::arena_bytes, timeout_s),
          ring_(peers_, *carrier_),
          pairs_(peers_, *carrier_) {
        rank.barrier();  // nobody's kernel waits while another rank still asks for memory
        carrier_->start();
    }

    std::string kind() const override { return "native"; }
    void synchronize(Stream& stream) override { peers_.synchronize(stream); }

  private:
    static AnyArray array_of(const void* data, const Elements& elements) {
        return {const_cast<void*>(data), elements.count, bytes_of(elements.type),
                name_of(elements.type)};
    }
    bool is_near(int rank) const { return peers_.view().control[rank] != nullptr; }

    const std::shared_ptr<SharedArena>& arena() override { return peers_.arena(); }

    void broadcast_elements(const Elements& elements, int root, Stream& stream,
                            const std::string& name) override {
        ring_.broadcast(array_of(elements.output, elements), root, stream, name);
    }
    void reduce_elements(const Elements& elements, ReduceOp op, int root, Stream& stream,
                         const std::string& name) override {
        with_type(elements.type, [&]<class T>() {
            ring_.reduce(static_cast<const T*>(elements.input), static_cast<T*>(elements.output),
                         elements.count, op, root, stream, name);
        });
    }
    void all_reduce_elements(const Elements& elements, ReduceOp op, Stream& stream,
                             const std::string& name) override {
        with_type(elements.type, [&]<class T>() {
            ring_.all_reduce(static_cast<const T*>(elements.input),
                             static_cast<T*>(elements.output), elements.count, op, stream, name);
        });
    }
    void reduce_scatter_elements(const Elements& elements, ReduceOp op, Stream& stream,
                                 const std::string& name) override {
        with_type(elements.type, [&]<class T>() {
            ring_.reduce_scatter(static_cast<const T*>(elements.input),
                                 static_cast<T*>(elements.output), elements.count, op, stream,
                                 name);
        });
    }
    void all_gather_elements(const Elements& elements, Stream& stream,
                             const std::string& name) override {
        ring_.all_gather(array_of(elements.input, elements), elements.output, stream, name);
    }

    void send_elements(const Elements& elements, int to, Stream& stream,
                       const std::string& name) override {
        const AnyArray array = array_of(elements.input, elements);
        if (is_near(to))
            peers_.send_bytes(array.data, array.count, array.element_bytes, array.type, to, stream,
                              name);
        else
            pairs_.send(array, to, stream, name);
    }
    void receive_elements(const Elements& elements, int from, Stream& stream,
                          const std::string& name) override {
        const AnyArray array = array_of(elements.output, elements);
        if (is_near(from))
            peers_.receive_bytes(array.data, array.count, array.element_bytes, array.type, from,
                                 stream, name);
        else
            pairs_.receive(array, from, stream, name);
    }

    CarrierOfRun carrier_;  // the first member: the others use it to their end
    Peers peers_;
    RingOverHosts ring_;
    PairsOverHosts pairs_;
};

}  // namespace

std::unique_ptr<Communicator> make_hosts_communicator(Rank& rank, std::size_t arena_bytes,
                                                      std::unique_ptr<Transport> transport,
                                                      std::optional<double> timeout_s) {
    if (rank.job().link)
        throw OptionError(
            "--link simulates a link between the ranks of one host, and these are on several, with "
            "a real one: leave it out.");
    return std::make_unique<HostsCommunicator>(rank, arena_bytes, std::move(transport), timeout_s);
}

}  // namespace ddp
